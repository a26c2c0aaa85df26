"""An `up` that fails leaves a complete fleet or nothing that costs money, and says which."""

from __future__ import annotations

from typing import Any

import pytest

from harness.fleet.admitted import Placement
from harness.fleet.tags import ATTEMPT, FLEET, STUDY
from tests.engine.engine import Engine, outputs
from tests.engine.moto.server import MotoCloud
from tests.engine.seen import Seen
from tests.engine.told import Told, admitted, changed

FAILURES: dict[str, tuple[str, dict[str, Any], str]] = {
    "the second host has no capacity": (
        "NoCapacity",
        {"nth": (2,)},
        "InsufficientInstanceCapacity",
    ),
    "the first zone does not offer the type": (
        "NotOffered",
        {"zone": "us-east-1a", "type": "g6e.xlarge"},
        "Unsupported",
    ),
    "the second launch is denied": (
        "Denied",
        {"action": "RunInstances", "nth": (2,)},
        "UnauthorizedOperation",
    ),
    "the second outer deadline is denied": (
        "Denied",
        {"action": "POST /schedules/host-1", "service": "scheduler"},
        "AccessDenied",
    ),
    "a host ends by itself while it starts": ("InternalError", {}, "Client.InternalError"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_up_ends_what_it_launched_and_plain_destroy_removes_the_rest(
    name: str, engine: Engine, cloud: MotoCloud
) -> None:
    seen, told = Seen(cloud), Told(admitted(), cloud.client("ec2"))
    others = bystanders(cloud)
    before = seen.everything()
    rule, fields, code = FAILURES[name]
    cloud.on(rule, **fields)
    failed = engine.up(told.program)
    assert failed.code != 0
    assert code in failed.text
    assert len([call for call in told.calls if call.startswith("failure")]) == 1
    assert seen.living() == others["instances"]
    assert seen.everything()["volumes"] == before["volumes"]
    assert "preservation-gate" not in {each["urn"].split("::")[-1] for each in engine.state()}
    cloud.off(rule)
    engine.destroy().ok()
    assert seen.everything() == {**before, "buckets": [told.fleet.bucket]}


def test_a_denied_call_before_any_host_ends_nothing(engine: Engine, cloud: MotoCloud) -> None:
    seen, told = Seen(cloud), Told(admitted(), cloud.client("ec2"))
    before = seen.everything()
    cloud.on("Denied", action="CreateSubnet")
    assert "UnauthorizedOperation" in engine.up(told.program).text
    assert told.calls == ["admission"]
    cloud.off("Denied")
    engine.destroy().ok()
    assert seen.everything() == {**before, "buckets": [told.fleet.bucket]}


def test_the_next_placement_stands_up_in_the_same_stack(engine: Engine, cloud: MotoCloud) -> None:
    """No second host for a slot: the first zone's host is gone before the second zone's comes."""
    places = tuple(
        Placement(type="g6e.xlarge", zones=(zone, zone)) for zone in ("us-east-1a", "us-east-1b")
    )
    seen, told = Seen(cloud), Told(admitted(placements=places), cloud.client("ec2"))
    cloud.on("NoCapacity", zone="us-east-1a", nth=(2,))
    assert engine.up(told.program).code != 0
    assert seen.living() == []
    told.fleet = changed(told.fleet, chosen=1)
    engine.up(told.program).ok()
    hosts = seen.instances()
    assert [one["Placement"]["AvailabilityZone"] for one in hosts] == ["us-east-1b"] * 2
    assert [host.instance_id for host in outputs(engine).hosts] == seen.living()
    attempts = [{tag["Key"]: tag["Value"] for tag in one["Tags"]}[ATTEMPT] for one in hosts]
    assert attempts == ["1.1", "1.1"]


def test_a_failure_of_our_own_hook_ends_the_placement(engine: Engine, cloud: MotoCloud) -> None:
    """A journal that cannot be written after the first host: the engine's error hook is not run."""
    seen, told = Seen(cloud), Told(admitted(), cloud.client("ec2"))

    class FullDisk(list[str]):
        def append(self, call: str) -> None:
            if call.startswith("after 0"):
                raise OSError("no space left on device")
            super().append(call)

    told.calls = FullDisk()
    failed = engine.up(told.program)
    assert "no space left on device" in failed.text
    assert seen.living() == []


def test_an_intent_that_is_refused_on_a_standing_fleet_ends_no_host(
    engine: Engine, cloud: MotoCloud
) -> None:
    """A host died; plain `up` would launch its slot again. It is refused, the other one stays."""
    seen, told = Seen(cloud), Told(admitted(), cloud.client("ec2"))
    engine.up(told.program).ok()
    first, second = seen.living()
    cloud.client("ec2").terminate_instances(InstanceIds=[first])

    class Refuses(list[str]):
        def append(self, call: str) -> None:
            if call.startswith("before"):
                raise RuntimeError("slot 0 had a host before")
            super().append(call)

    told.calls = Refuses()
    assert "slot 0 had a host before" in engine.up(told.program).text
    assert seen.living() == [second]
    assert not [call for call in told.calls if call.startswith("failure")]
    assert engine.destroy().code != 0
    assert seen.living() == [second]


def bystanders(cloud: MotoCloud) -> dict[str, list[str]]:
    """Hosts of others: without tags, with another fleet's, and with nearly this fleet's."""
    ec2 = cloud.client("ec2")
    made = []
    for tags in (
        {},
        {FLEET: "pair-10", STUDY: "pair", ATTEMPT: "1.0"},
        {FLEET: "pair-1", ATTEMPT: "2.0"},
        {FLEET.lower(): "pair-1", ATTEMPT: "1.0", "Name": "pair-1-host-0"},
    ):
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        said = ec2.run_instances(
            ImageId="ami-12c6146b",
            InstanceType="t3.micro",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": listed}] if listed else [],
        )
        made.append(said["Instances"][0]["InstanceId"])
    return {"instances": Seen(cloud).living()}
