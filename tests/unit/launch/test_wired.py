"""What the program is told: refusals before a launch, intents before effects, the gate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.clock import Clock
from harness.cloud.clients import Aws
from harness.errors import Refused
from harness.fleet.tags import tags
from harness.fleet.wiring import Wired, require_launchable, require_time
from harness.launch import closing, record
from harness.launch.admit import admit_plan
from harness.launch.fleets import FleetPlace, driving
from harness.plan import LoadedPlan

NOW = datetime.now(UTC)


def at(seconds: float) -> Clock:
    return Clock(now=lambda: NOW + timedelta(seconds=seconds), sleep=lambda _: None)


@pytest.fixture
def place(aws: Aws, loaded: LoadedPlan, tmp_path: Path) -> FleetPlace:
    return admit_plan(loaded, tmp_path / "runs", aws, at(0), address="198.51.100.7").place


def launch(aws: Aws, place: FleetPlace, slot: int) -> str:
    wanted = [{"Key": k, "Value": v} for k, v in tags(place.admitted, slot).items()]
    ec2: Any = aws.ec2
    made = ec2.run_instances(
        ImageId="ami-12345678", MinCount=1, MaxCount=1, InstanceType="g6e.xlarge",
        TagSpecifications=[{"ResourceType": "instance", "Tags": wanted}],
    )  # fmt: skip
    return str(made["Instances"][0]["InstanceId"])


def test_too_little_time_and_a_passed_deadline_refuse(place: FleetPlace) -> None:
    require_time(place, at(800))
    with pytest.raises(Refused, match="minutes are left") as late:
        require_time(place, at(1000))
    assert "harness down" in late.value.next_command
    with pytest.raises(Refused, match="has passed"):
        require_launchable(place, at(1801))


def test_a_slot_that_has_a_host_gets_no_second_one(aws: Aws, place: FleetPlace) -> None:
    wired = Wired(place, aws, at(1))
    wired.before_host(0)
    host = launch(aws, place, 0)
    with pytest.raises(Refused, match=host):
        wired.before_host(0)
    aws.ec2.terminate_instances(InstanceIds=[host])
    with pytest.raises(Refused, match="launches each once"):
        wired.before_host(0)
    wired.before_host(1)
    assert [e.data["slot"] for e in record.launch_intents(place.entries())] == [0, 1]


def test_a_failure_ends_what_was_launched_also_what_nobody_recorded(
    aws: Aws, place: FleetPlace
) -> None:
    wired = Wired(place, aws, at(1))
    wired.before_host(0)
    known = launch(aws, place, 0)
    wired.after_host(0, known)
    wired.before_host(1)
    lost = launch(aws, place, 1)
    bystander = aws.ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1)
    wired.on_failure("host-1: InsufficientInstanceCapacity")
    states = {
        i["InstanceId"]: i["State"]["Name"]
        for r in aws.ec2.describe_instances()["Reservations"]
        for i in r["Instances"]
    }
    assert states == {
        known: "terminated", lost: "terminated",
        bystander["Instances"][0]["InstanceId"]: "running",
    }  # fmt: skip
    found = closing.resources(place, at(60).utc(), final=True)
    assert {host.id for host in found.hosts} == {known, lost}
    assert all(host.ended_utc for host in found.hosts)
    assert found.state == "final" and found.volumes is not None


def test_the_gate_is_closed_until_nothing_is_to_be_preserved_and_again_after_a_launch(
    aws: Aws, place: FleetPlace
) -> None:
    wired = Wired(place, aws, at(1))
    assert not wired.preserved()
    nothing = record.Released(basis="nothing to preserve", why="no study has run")
    with driving(place, at(2)) as journal:
        record.write_release(journal, nothing)
    assert wired.preserved()
    wired.before_host(0)
    assert not wired.preserved()
