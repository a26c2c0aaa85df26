"""The stack's one output: a versioned object that is validated before anything acts on it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.fleet.admitted import FleetId
from harness.plan.hosts import InstanceType, Region, Zone
from harness.plan.kinds import CountOrZero, Text
from harness.strict import Model

OUTPUT = "fleet"
"""Name of the stack output that holds StackOutputs as JSON."""


class StackHost(Model):
    """One instance as the engine knows it; recheck with DescribeInstances before acting on it."""

    slot: CountOrZero
    instance_id: Text
    type: InstanceType
    zone: Zone
    private_address: Text
    public_address: Text


class StackOutputs(Model):
    """What `pulumi stack output fleet` prints."""

    schema_: Literal["harness/stack/1"] = Field(default="harness/stack/1", alias="schema")
    fleet: FleetId
    region: Region
    deadline_utc: Text
    bucket: Text
    prefix: Text
    security_group: Text
    schedule_group: Text
    schedules: tuple[Text, ...]
    """Names, by slot."""
    hosts: Annotated[tuple[StackHost, ...], Field(min_length=1)]
    gate: Literal["armed", "released"]
