"""`pulumi up` to `pulumi destroy` with the plain commands, on the real engine and a cloud."""

from __future__ import annotations

import json

import pytest

from harness.fleet import places
from harness.fleet.admitted import Placement
from harness.fleet.tags import FLEET, SLOT
from tests.engine.engine import Engine, outputs
from tests.engine.moto.server import MotoCloud
from tests.engine.seen import Seen
from tests.engine.told import Told, admitted


@pytest.fixture
def seen(cloud: MotoCloud) -> Seen:
    return Seen(cloud)


@pytest.fixture
def told(cloud: MotoCloud) -> Told:
    return Told(admitted(), cloud.client("ec2"))


def test_up_refused_destroy_released_destroy_and_nothing_left_twice(
    engine: Engine, cloud: MotoCloud, seen: Seen
) -> None:
    before = seen.everything()
    for turn in (1, 2):
        told = Told(admitted(fleet=f"pair-{turn}", bucket_present=turn == 2), cloud.client("ec2"))
        engine.up(told.program).ok()
        hosts = outputs(engine).hosts
        assert [call for call in told.calls if call != "admission"] == [
            f"{word} {host.slot}{tail}"
            for host in hosts
            for word, tail in (("before", ""), ("after", f" {host.instance_id}"))
        ]
        assert seen.living() == [host.instance_id for host in hosts]
        stands = seen.everything()

        engine.preview(told.program, "--expect-no-changes").ok()
        engine.up(told.program, "--expect-no-changes").ok()

        refused = engine.destroy()
        assert refused.code != 0
        assert "preservation-gate" in refused.text
        refused = engine.destroy("--run-program", program=told.program)
        assert refused.code != 0
        assert "not proved preserved" in refused.text
        assert "harness down --abandon" in refused.text
        assert seen.everything() == stands

        told.is_preserved = True
        engine.up(told.program).ok()
        assert outputs(engine).gate == "released"
        assert seen.everything() == stands
        engine.destroy().ok()
        assert seen.everything() == {**before, "buckets": [told.fleet.bucket]}
        assert engine.state() == []
    assert seen.bucket_settings(admitted().bucket) == {
        "versioning": "Enabled",
        "encryption": "AES256",
        "public": False,
        "incomplete uploads, days": 7,
    }


def test_what_a_host_is_launched_with(engine: Engine, told: Told, seen: Seen) -> None:
    engine.up(told.program).ok()
    fleet = told.fleet
    for slot, one in enumerate(seen.instances()):
        assert one["InstanceType"] == "g6e.xlarge"
        assert one["ImageId"] == fleet.image_id
        assert one["MetadataOptions"]["HttpTokens"] == "required"
        assert one["Placement"]["AvailabilityZone"] == "us-east-1a"
        assert one["Placement"]["GroupName"].startswith("together")
        tags = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
        assert tags["Name"] == f"pair-1-host-{slot}"
        assert (tags[FLEET], tags[SLOT], tags["HarnessAttempt"]) == ("pair-1", str(slot), "1.0")
        assert tags["ExpiresAt"] == fleet.deadline_utc
        assert {"Study", "SourceCommit", "BudgetUSD"} <= set(tags)
        assert seen.shutdown_behaviour(one["InstanceId"]) == "terminate"
        (volume,) = seen.volumes(one["InstanceId"])
        assert (volume["VolumeType"], volume["Encrypted"], volume["Size"]) == ("gp3", True, 100)
        assert (volume["Iops"], volume["Throughput"]) == (4000, 250)
        assert {tag["Key"]: tag["Value"] for tag in volume["Tags"]}[SLOT] == str(slot)
        record = json.loads(seen.object(fleet.bucket, places.acknowledged(fleet, slot)))
        assert record["instance_id"] == one["InstanceId"]
        assert record["deadline_utc"] == fleet.deadline_utc
    rules = seen.rules(outputs(engine).security_group)
    assert sorted(rules) == [
        ("in", "-1", outputs(engine).security_group),
        ("in", "tcp 22-22", "203.0.113.7/32"),
        ("out", "-1", "0.0.0.0/0"),
    ]
    assert seen.untagged() == []


def test_hosts_spread_over_zones_of_the_default_network(
    engine: Engine, cloud: MotoCloud, seen: Seen
) -> None:
    spread = Placement(type="g6e.2xlarge", zones=("us-east-1b", "us-east-1a"))
    told = Told(
        admitted(placements=(spread,), one_zone=False, network="default"), cloud.client("ec2")
    )
    vpcs = seen.everything()["vpcs"]
    engine.up(told.program).ok()
    zones = [one["Placement"]["AvailabilityZone"] for one in seen.instances()]
    assert zones == ["us-east-1b", "us-east-1a"]
    assert not any(one["Placement"].get("GroupName") for one in seen.instances())
    assert seen.everything()["vpcs"] == vpcs


def test_the_schedule_performed_word_for_word_ends_the_hosts(
    engine: Engine, told: Told, cloud: MotoCloud, seen: Seen
) -> None:
    engine.up(told.program).ok()
    known = outputs(engine)
    for name in known.schedules:
        schedule = seen.schedule(known.schedule_group, name)
        assert schedule["ScheduleExpression"] == f"at({told.fleet.deadline_utc[:19]})"
        assert schedule["ScheduleExpressionTimezone"] == "UTC"
        assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert schedule["State"] == "ENABLED"
    cloud.fire(known.schedule_group, "host-0")
    assert seen.living() == [known.hosts[1].instance_id]
    cloud.fire(known.schedule_group, "host-1")
    assert seen.living() == []


def test_a_refusal_of_admission_creates_nothing_and_is_one_sentence(
    engine: Engine, told: Told, seen: Seen
) -> None:
    from harness.errors import Refused

    before = seen.everything()

    def refuse() -> None:
        raise Refused("the deadline has passed", where="pair-1", next_command="harness admit x")

    told.refuse = refuse
    for refused in (engine.preview(told.program), engine.up(told.program)):
        assert refused.code != 0
        assert "pair-1: the deadline has passed. Next: harness admit x" in refused.text
        assert "Traceback" not in refused.text
    assert seen.everything() == before


def test_after_its_end_a_fleet_is_not_launched_again_and_still_goes(
    engine: Engine, told: Told, cloud: MotoCloud, seen: Seen
) -> None:
    before = seen.everything()
    engine.up(told.program).ok()
    told.is_preserved = True
    for instance in seen.living():
        cloud.client("ec2").terminate_instances(InstanceIds=[instance])
    again = engine.up(told.program)
    assert again.code != 0
    assert "no host of it is launched again; type `pulumi destroy`" in again.text
    assert seen.living() == []
    engine.destroy().ok()
    assert seen.everything() == {**before, "buckets": [told.fleet.bucket]}
