"""The outer deadline is proved word by word; anything else is a fault with a name."""

from __future__ import annotations

from typing import Any

import pytest

from harness.cloud.clients import Aws
from harness.fleet.outputs import StackHost, StackOutputs
from harness.launch.outer import TERMINATE, fault, faults

OTHER = '{"InstanceIds": ["i-2"]}'
DEADLINE = "2026-11-29T22:00:00.500000Z"


def schedule(**changes: Any) -> dict[str, Any]:
    return {
        "State": "ENABLED",
        "ScheduleExpression": "at(2026-11-29T22:00:00)",
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": TERMINATE, "RoleArn": "arn:x", "Input": '{"InstanceIds": ["i-1"]}'},
    } | changes


def test_a_schedule_that_ends_the_host_on_time_has_no_fault() -> None:
    assert fault(schedule(), "i-1", DEADLINE) == ""


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"State": "DISABLED"}, "DISABLED"),
        ({"ScheduleExpression": "at(2026-11-29T23:00:00)"}, "23:00:00"),
        ({"ScheduleExpression": "rate(1 hour)"}, "rate"),
        ({"ScheduleExpressionTimezone": "Europe/Paris"}, "Paris"),
        ({"FlexibleTimeWindow": {"Mode": "FLEXIBLE"}}, "flexible"),
        ({"Target": {"Arn": "arn:other", "RoleArn": "arn:x", "Input": "{}"}}, "arn:other"),
        (
            {"Target": {"Arn": TERMINATE, "RoleArn": "r", "Input": '{"InstanceIds": ["i-2"]}'}},
            "i-2",
        ),
        ({"Target": {"Arn": TERMINATE, "RoleArn": "arn:x", "Input": "nothing"}}, "not i-1"),
    ],
)
def test_every_other_schedule_is_named(changes: dict[str, Any], word: str) -> None:
    assert word in fault(schedule(**changes), "i-1", DEADLINE)


def test_a_host_that_a_shutdown_would_only_stop_is_a_fault(aws: Aws) -> None:
    """Read back from AWS for each host, as its schedule is."""
    ec2: Any = aws.ec2
    scheduler: Any = aws.scheduler
    deadline = "2099-11-29T22:00:00.000000Z"
    scheduler.create_schedule_group(Name="g")
    hosts = []
    for slot, behaviour in enumerate(("terminate", "stop")):
        made = ec2.run_instances(
            ImageId="ami-12345678", MinCount=1, MaxCount=1,
            InstanceInitiatedShutdownBehavior=behaviour,
        )["Instances"][0]["InstanceId"]  # fmt: skip
        target = {"Arn": TERMINATE, "RoleArn": ROLE, "Input": f'{{"InstanceIds": ["{made}"]}}'}
        scheduler.create_schedule(
            Name=f"host-{slot}", GroupName="g", ScheduleExpression="at(2099-11-29T22:00:00)",
            FlexibleTimeWindow={"Mode": "OFF"}, Target=target,
        )  # fmt: skip
        hosts.append(
            StackHost(
                slot=slot, instance_id=made, type="g6e.xlarge", zone="us-east-1a",
                private_address="10.0.0.1", public_address="198.51.100.1",
            )
        )  # fmt: skip
    outputs = StackOutputs(
        fleet="f-1-x", region="us-east-1", deadline_utc=deadline, bucket="b", prefix="p",
        security_group="sg-1", schedule_group="g", schedules=("host-0", "host-1"),
        hosts=tuple(hosts), gate="armed",
    )  # fmt: skip
    assert faults(aws, outputs) == {1: "a shutdown of the guest would stop the host"}
    scheduler.delete_schedule(Name="host-0", GroupName="g")
    assert faults(aws, outputs)[0] == "the schedule host-0 does not exist"


ROLE = "arn:aws:iam::123456789012:role/deadline"
