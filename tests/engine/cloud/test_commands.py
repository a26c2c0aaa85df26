"""`harness sweep`, `cost` and `prices` as a person types them, against the cloud."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.cli import cost as cost
from harness.cli import prices as prices
from harness.cli import sweep as sweep
from harness.cli.app import app
from harness.clock import Clock
from harness.cost.observed import HostLife, Observed, VolumeLife
from harness.cost.resources import FleetFacts, resources_of
from harness.prices import PriceFile, load_prices
from harness.results import Resources
from harness.strict import load_file
from tests.engine.cloud.fleets import Standing, bystanders, everything, stand_up
from tests.engine.cloud.launches import fleet_tags, launch
from tests.engine.moto.server import MotoCloud
from tests.unit.cost.test_price_refresh import offer
from trainer import contract


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def quick(cloud: MotoCloud, monkeypatch: pytest.MonkeyPatch) -> MotoCloud:
    """Waits move the cloud's clock on instead of taking time."""
    passed = [0.0]

    def sleep(seconds: float) -> None:
        passed[0] += seconds
        cloud.advance(seconds)

    def made() -> Clock:
        return Clock(monotonic=lambda: passed[0], sleep=sleep)

    for module in (cost, sweep):
        monkeypatch.setattr(module, "clock", made)
    return cloud


def lines_fit(result: Result) -> bool:
    return max(map(len, result.stdout.splitlines())) <= 80


class TestSweep:
    def test_nothing_is_one_sentence(self, quick: MotoCloud) -> None:
        result = run("sweep", "--region", "us-east-1", "--region", "eu-west-1")
        assert result.exit_code == 0
        assert "nothing that carries a fleet's tag is left in us-east-1, eu-west-1" in result.output

    def test_what_costs_is_exit_5_and_the_next_command_removes_it(self, quick: MotoCloud) -> None:
        standing = stand_up(quick, "f-1")
        others = bystanders(quick, standing, inside=False)
        found = run("sweep", "--fleet", "f-1")
        assert found.exit_code == 5 and lines_fit(found)
        assert standing.hosts[0] in found.output.replace("\n", "")
        assert "harness sweep --fleet f-1 --remove" in found.output
        refused = run("sweep", "--fleet", "f-1", "--remove")
        assert refused.exit_code == 3 and "may not be preserved" in refused.output
        quick.on("SlowTerminate", seconds=400)
        removed = run("sweep", "--fleet", "f-1", "--remove", "--abandon", "a test")
        assert removed.exit_code == 0 and lines_fit(removed)
        assert "nothing of fleet f-1 is left" in removed.output
        assert run("sweep", "--fleet", "f-1").exit_code == 0
        assert others <= everything(quick)

    def test_all_fleets_are_listed_and_json_is_json(self, quick: MotoCloud) -> None:
        for fleet in ("f-1", "f-2"):
            launch(quick, fleet_tags(fleet))
        result = run("sweep", "--json")
        assert result.exit_code == 5
        values = json.loads(result.stdout.splitlines()[0])
        assert {each["fleet"] for each in values} == {"f-1", "f-2"}

    def test_removing_needs_a_name(self, quick: MotoCloud) -> None:
        result = run("sweep", "--remove")
        assert result.exit_code == 2 and "--fleet" in result.output


def record(standing: Standing, cloud: MotoCloud) -> Resources:
    volumes = cloud.client("ec2").describe_volumes()["Volumes"]
    first, last = "2026-11-30T01:00:00.000000Z", "2026-11-30T02:00:00.000000Z"
    observed = Observed(
        region="us-east-1", at_utc=last, deadline_utc="2026-11-30T09:00:00.000000Z",
        hosts=tuple(HostLife(id=each, slot=slot, type="g6e.xlarge", from_utc=first, until_utc=last,
                             sent_bytes=10, received_bytes=10)
                    for slot, each in enumerate(standing.hosts)),
        volumes=tuple(VolumeLife(id=each["VolumeId"], gib=100, iops=5000, throughput_mbps=500,
                                 from_utc=first, until_utc=last) for each in volumes),
        traffic_cap_bytes=0,
    )  # fmt: skip
    facts = FleetFacts(
        fleet="f-1", studies=("a", "b"), attempts=1, regions=("us-east-1",), allowance_usd="10",
        ceiling_usd="150", deadlines=("outer: read back",),
    )  # fmt: skip
    return resources_of(facts, observed, load_prices("us-east-1"))


class TestCost:
    def test_it_is_final_once_everything_is_gone(self, quick: MotoCloud, tmp_path: Path) -> None:
        standing = stand_up(quick, "f-1")
        path = tmp_path / "resources.json"
        contract.write_json(path, record(standing, quick).to_json())
        there = run("cost", path)
        assert there.exit_code == 5 and lines_fit(there)
        found = load_file(Resources, path)
        assert found.state == "stack still present"
        assert any(standing.hosts[0] in thing for thing in found.residue)
        quick.client("ec2").terminate_instances(InstanceIds=list(standing.hosts))
        address = quick.client("ec2").describe_addresses()["Addresses"][0]
        quick.client("ec2").release_address(AllocationId=address["AllocationId"])
        stack = run("cost", path)
        assert stack.exit_code == 4 and "pulumi destroy" in stack.output
        run("sweep", "--fleet", "f-1", "--remove")
        total = found.total_bound_usd
        done = run("cost", path)
        assert done.exit_code == 0 and lines_fit(done)
        found = load_file(Resources, path)
        assert (found.state, found.residue, found.total_bound_usd) == ("final", (), total)
        quick.on("Denied", action="DescribeInstances")
        assert run("cost", path).exit_code == 0  # final: AWS is not asked again

    def test_what_may_not_be_seen_is_not_final(self, quick: MotoCloud, tmp_path: Path) -> None:
        path = tmp_path / "resources.json"
        nothing = Standing(hosts=(), group="", subnet="", vpc="")
        contract.write_json(path, record(nothing, quick).to_json())
        quick.on("Denied", service="scheduler", action="GET /schedule-groups")
        assert run("cost", path).exit_code == 3
        assert load_file(Resources, path).state == "stack still present"


def test_prices_come_from_the_query_api(cloud: MotoCloud, tmp_path: Path) -> None:
    value: Any = offer(dearer="ec2/g6e.xlarge")
    entries = tuple(
        json.dumps({
            "product": product, "serviceCode": "AmazonEC2", "version": "1",
            "publicationDate": "2026-11-28T01:02:03Z",
            "terms": {"OnDemand": value["terms"]["OnDemand"][sku]},
        })
        for sku, product in value["products"].items()
    )  # fmt: skip
    cloud.on("PriceList", entries=entries)
    out = tmp_path / "new.json"
    result = run("prices", "--refresh", "--out", out)
    assert result.exit_code == 0, result.output
    new = load_file(PriceFile, out)
    assert new.price("ec2/g6e.xlarge").usd == "99.5"
    assert (new.price("s3/get").usd, new.checked) == ("0.0004", "2026-11-28")
