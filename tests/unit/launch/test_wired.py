"""What the program is told: refusals before a launch, intents before effects, the gate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.clock import Clock
from harness.cloud.clients import Aws
from harness.cloud.left import Kind, Left
from harness.errors import Refused, Waiting
from harness.fleet.tags import tags
from harness.fleet.wiring import Wired, require_launchable, require_time
from harness.launch import closing, ending, record
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


def test_an_end_whose_outcome_was_lost_and_one_by_the_deadline_are_observed(
    aws: Aws, place: FleetPlace
) -> None:
    """Killed between AWS's 'terminated' and the outcome; the other host's schedule fired."""
    wired = Wired(place, aws, at(1))
    ids = []
    for slot in (0, 1):
        wired.before_host(slot)
        ids.append(launch(aws, place, slot))
        wired.after_host(slot, ids[-1])
    volumes = [v for host in ending.seen(aws, place.admitted) for v in host.volumes]
    with driving(place, at(2)) as journal:
        journal.append("intent", "end/1/hosts/0", {"hosts": ids[:1], "volumes": volumes})
    aws.ec2.terminate_instances(InstanceIds=ids)
    assert any(host.ended_utc is None for host in closing.resources(place, at(3).utc()).hosts)
    with driving(place, at(4)) as journal:
        ending.end_all(aws, place.admitted, journal)
        found = closing.resources(place, at(5).utc(), final=True)
        assert {host.id for host in found.hosts} == set(ids)
        assert all(host.ended_utc for host in found.hosts)
        assert {v.id for v in found.volumes or ()} == set(volumes)
        assert all(v.gone_utc for v in found.volumes or ())
        entries = len(journal.entries)
        ending.end_all(aws, place.admitted, journal)
        assert len(journal.entries) == entries, "once is enough"


def test_what_stood_and_when_it_went_is_in_the_record(aws: Aws, place: FleetPlace) -> None:
    left = [
        Left(kind=kind, id=name, region="us-east-1", fleet=place.admitted.fleet, why="tag")
        for kind, name in LEFT
    ]
    for second, shown in ((1, left), (2, left[1:]), (3, left[2:]), (4, left[:0]), (5, left[:0])):
        with driving(place, at(second)) as journal:
            record.write_look(journal, shown)
    gone = {each.id: each.gone_utc for each in closing.removed(place.entries())}
    assert gone == {"g/host-0": at(2).utc(), "sg-1": at(3).utc(), "vpc-1": at(4).utc()}
    with driving(place, at(6)) as journal:
        record.write_look(journal, left[2:3])
    assert [e.gone_utc for e in closing.removed(place.entries()) if e.id == "vpc-1"] == [None]


LEFT: tuple[tuple[Kind, str], ...] = (
    ("schedule", "g/host-0"), ("security group", "sg-1"), ("VPC", "vpc-1"), ("volume", "vol-1"),
)  # fmt: skip


def test_two_commands_on_one_fleet_say_that_it_is_the_fleet(place: FleetPlace) -> None:
    said = "another process drives this fleet"
    with driving(place, at(1)), pytest.raises(Waiting, match=said), driving(place, at(1)):
        pass


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
