"""The outer deadline, read back: one schedule a host that ends exactly this host on time."""

from __future__ import annotations

import json
import re
from typing import Any

from harness.clock import parse_utc
from harness.cloud.clients import Aws, absent, asking
from harness.fleet.outputs import StackOutputs

TERMINATE = "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
PROOF_S = 300.0
"""A host whose outer deadline is not proved within this time of its launch is ended."""


def fault(schedule: dict[str, Any], instance_id: str, deadline_utc: str) -> str:
    """What is wrong with a schedule as GetSchedule shows it; '' when it does its work. Pure."""
    if schedule.get("State") != "ENABLED":
        return f"it is {schedule.get('State', 'of unknown state')}"
    wanted = parse_utc(deadline_utc).replace(microsecond=0)
    expression = str(schedule.get("ScheduleExpression"))
    match = re.fullmatch(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)", expression)
    zone = schedule.get("ScheduleExpressionTimezone", "UTC")
    if match is None or zone != "UTC" or match[1] != wanted.strftime("%Y-%m-%dT%H:%M:%S"):
        return f"its time is {expression} {zone}, not the deadline {deadline_utc}"
    if schedule.get("FlexibleTimeWindow", {}).get("Mode") != "OFF":
        return "its time is flexible"
    target = schedule.get("Target", {})
    if target.get("Arn") != TERMINATE or not target.get("RoleArn"):
        return f"it calls {target.get('Arn')} as {target.get('RoleArn')}"
    try:
        ids = json.loads(str(target.get("Input"))).get("InstanceIds")
    except (ValueError, AttributeError):
        ids = None
    return "" if ids == [instance_id] else f"it ends {ids}, not {instance_id}"


def faults(aws: Aws, outputs: StackOutputs) -> dict[int, str]:
    """The fault of each slot's schedule, and of each host's shutdown behaviour; {}: all proved."""
    from botocore.exceptions import ClientError

    found: dict[int, str] = {}
    for host in outputs.hosts:
        name = outputs.schedules[host.slot]
        with asking("for the outer deadlines", where=aws.region):
            try:
                schedule = aws.scheduler.get_schedule(GroupName=outputs.schedule_group, Name=name)
            except ClientError as error:
                if not absent(error) and "ResourceNotFound" not in str(error):
                    raise
                found[host.slot] = f"the schedule {name} does not exist"
                continue
            shutdown = aws.ec2.describe_instance_attribute(
                InstanceId=host.instance_id, Attribute="instanceInitiatedShutdownBehavior"
            )["InstanceInitiatedShutdownBehavior"].get("Value")
        wrong = fault(dict(schedule), host.instance_id, outputs.deadline_utc)
        if shutdown != "terminate":
            wrong = wrong or f"a shutdown of the guest would {shutdown} the host"
        if wrong:
            found[host.slot] = wrong
    return found


def proved(aws: Aws, outputs: StackOutputs) -> dict[int, str]:
    """Read back until all is proved or the time is over; the faults that are left."""
    until = aws.clock.monotonic() + PROOF_S
    while True:
        left = faults(aws, outputs)
        if not left or aws.clock.monotonic() >= until:
            return left
        aws.clock.sleep(5)
