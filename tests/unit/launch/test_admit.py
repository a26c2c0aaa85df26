"""Admission writes a fleet, or refuses and writes nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.clock import Clock, parse_utc
from harness.cloud.clients import Aws
from harness.errors import BadInput, HarnessError, Refused
from harness.fleet import tags
from harness.fleet.admitted import AdmittedFleet
from harness.launch.admit import Admission, admit_plan
from harness.launch.fleets import fleet_of_plan
from harness.plan import LoadedPlan, load_plan
from tests.toy_plan import write_plan
from tests.unit.launch.aws import IMAGE, aws_plan
from tests.unit.launch.conftest import publish

NOW = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)


def at(seconds: float = 0) -> Clock:
    return Clock(now=lambda: NOW + timedelta(seconds=seconds))


def admit(aws: Aws, loaded: LoadedPlan, runs: Path, clock: Clock | None = None) -> Admission:
    return admit_plan(loaded, runs, aws, clock or at(), address="198.51.100.7")


def refused(aws: Aws, loaded: LoadedPlan, runs: Path, clock: Clock | None = None) -> HarnessError:
    before = sorted(runs.rglob("*")) if runs.exists() else []
    with pytest.raises(HarnessError) as error:
        admit(aws, loaded, runs, clock)
    assert (sorted(runs.rglob("*")) if runs.exists() else []) == before, "nothing was written"
    return error.value


def test_it_writes_the_fleet_and_the_stack_configuration(
    aws: Aws, loaded: LoadedPlan, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    stack = tmp_path / "Pulumi.toy.yaml"
    stack.write_text("encryptionsalt: v1:abc\nconfig:\n  aws:region: us-east-1\n")
    found = admit(aws, loaded, runs)

    admitted = found.place.admitted
    assert parse_utc(admitted.deadline_utc) == NOW + timedelta(seconds=1800)
    assert admitted.operator_cidr == "198.51.100.7/32"
    assert admitted.image_name == "Deep Learning Base"
    assert [each.zones for each in admitted.placements] == [("us-east-1a", "us-east-1b")]
    assert (admitted.attempt, admitted.account, admitted.bucket_present) == (
        1,
        "123456789012",
        False,
    )
    written = json.loads((found.place.folder / "admitted.json").read_text())
    assert AdmittedFleet.model_validate_json(json.dumps(written)) == admitted
    assert found.place.entries()[0].data == written
    settings = yaml.safe_load(stack.read_text())
    assert json.loads(settings["config"]["harness:admitted"]) == written
    assert settings["config"]["aws:region"] == "us-east-1", "other settings stay"
    assert settings["encryptionsalt"] == "v1:abc"
    private = (found.place.folder / "login_key").read_text()
    for path in (stack, found.place.folder / "admitted.json", found.place.journal_path):
        assert private.splitlines()[1] not in path.read_text()
    assert fleet_of_plan(runs, loaded.hash) is not None


def test_a_fleet_that_is_there_refuses_a_second_one_also_past_its_deadline(
    aws: Aws, loaded: LoadedPlan, tmp_path: Path
) -> None:
    admit(aws, loaded, tmp_path / "runs")
    assert "is there already" in refused(aws, loaded, tmp_path / "runs").what
    late = refused(aws, loaded, tmp_path / "runs", at(7200))
    assert "past its deadline" in late.what
    assert late.next_command.startswith("harness down ")


def test_a_host_with_this_studys_tags_refuses_whoever_launched_it(
    aws: Aws, loaded: LoadedPlan, tmp_path: Path
) -> None:
    ec2: Any = aws.ec2

    def launch(study: str) -> str:
        wanted = [{"Key": tags.STUDY, "Value": study}, {"Key": tags.FLEET, "Value": "elsewhere"}]
        made = ec2.run_instances(
            ImageId="ami-12345678", MinCount=1, MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": wanted}],
        )  # fmt: skip
        return str(made["Instances"][0]["InstanceId"])

    launch("toy-2")
    host = launch("toy")
    error = refused(aws, loaded, tmp_path / "runs")
    assert host in error.what and error.exit_code == 3
    ec2.terminate_instances(InstanceIds=[host])
    admit(aws, loaded, tmp_path / "runs")


def test_an_unknown_image_lists_what_exists(aws: Aws, tmp_path: Path) -> None:
    publish("/aws/service/deeplearning/ami/x86_64/base-other/latest/ami-id", "ami-1")
    path = write_plan(tmp_path, aws_plan(image="base-newest"))
    (tmp_path / "Pulumi.yaml").write_text("name: harness\n")
    error = refused(aws, load_plan(path), tmp_path / "runs")
    assert isinstance(error, BadInput)
    assert f"{IMAGE}, base-other" in error.what


def test_zones_that_do_not_offer_the_type_are_left_out(aws: Aws, tmp_path: Path) -> None:
    path = write_plan(tmp_path, aws_plan(zones=["us-east-1f", "us-east-1a"], placement="one-zone"))
    (tmp_path / "Pulumi.yaml").write_text("name: harness\n")
    found = admit(aws, load_plan(path), tmp_path / "runs")
    assert [each.zones[0] for each in found.place.admitted.placements] == ["us-east-1a"]
    assert found.notes == ("g6e.xlarge is not offered in us-east-1f",)


def test_the_worst_case_with_earlier_launches_must_fit(aws: Aws, tmp_path: Path) -> None:
    plan = aws_plan()
    plan["budget"]["ceiling_usd"] = "4"
    (tmp_path / "Pulumi.yaml").write_text("name: harness\n")
    loaded = load_plan(write_plan(tmp_path, plan))
    first = admit(aws, loaded, tmp_path / "runs")
    folder = first.place.folder
    (folder / "resources.json").write_text(
        json.dumps(
            {
                "schema": "harness/resources/1", "fleet": first.place.admitted.fleet,
                "fleet_kind": "stack", "studies": [], "attempts": 1, "hosts": [], "lines": [],
                "allowance_usd": "0", "total_bound_usd": "2", "ceiling_usd": "4",
                "deadlines": [], "residue": [], "state": "final", "note": "a bound",
            }
        )
    )  # fmt: skip
    error = refused(aws, loaded, tmp_path / "runs", at(10))
    assert isinstance(error, (Refused, BadInput))
    assert "over the ceiling" in error.what


def test_no_credentials_is_one_sentence(
    loaded: LoadedPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    error = refused(Aws("us-east-1"), loaded, tmp_path / "runs")
    assert "no usable AWS credentials" in error.what and error.exit_code == 2
