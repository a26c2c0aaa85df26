"""The test provider refuses what the installed pulumi-aws does not know, as the real one would."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.rpc import UNKNOWN

from tests.engine.provider.server import KINDS, Servicer

INSTANCE = "aws:ec2/instance:Instance"
GOOD: dict[str, Any] = {
    "ami": "ami-1",
    "instanceType": "g6e.xlarge",
    "rootBlockDevice": {"volumeType": "gp3", "volumeSize": 100, "iops": 4000},
}


def faults(token: str, inputs: dict[str, Any]) -> dict[str, str]:
    """Property and reason of every failure of Check."""
    news = struct_pb2.Struct()
    news.update(inputs)
    urn = f"urn:pulumi:fleet::harness::{token}::it"
    said = Servicer("http://127.0.0.1:1").Check(
        provider_pb2.CheckRequest(urn=urn, news=news), context=None
    )
    return {failure.property: failure.reason for failure in said.failures}


def test_good_inputs_pass() -> None:
    assert faults(INSTANCE, GOOD) == {}
    assert faults(INSTANCE, {**GOOD, "subnetId": UNKNOWN, "rootBlockDevice": UNKNOWN}) == {}


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ({"instanceTyp": "g6e.xlarge"}, "instanceTyp"),
        ({"instance_type": "g6e.xlarge"}, "instance_type"),
        ({"rootBlockDevice": {"sizeGb": 100}}, "rootBlockDevice.sizeGb"),
        ({"rootBlockDevice": {"volumeSize": "big"}}, "rootBlockDevice.volumeSize"),
        ({"associatePublicIpAddress": "yes"}, "associatePublicIpAddress"),
        ({"vpcSecurityGroupIds": "sg-1"}, "vpcSecurityGroupIds"),
        ({"tags": {"Name": 1}}, "tags.Name"),
        ({"userData": "a", "userDataBase64": "YQ=="}, "userData"),
        ({"rootBlockDevice": {"volumeType": "gp9"}}, "rootBlockDevice.volumeType"),
        ({"rootBlockDevice": {"volumeType": "gp2", "iops": 4000}}, "rootBlockDevice.iops"),
        ({"volumeTags": {"a": "b"}, "rootBlockDevice": {"tags": {"a": "b"}}}, "volumeTags"),
    ],
)
def test_each_mistake_is_named(change: dict[str, Any], at: str) -> None:
    assert at in faults(INSTANCE, {**GOOD, **change})


def test_a_missing_field_and_a_reserved_name_are_named() -> None:
    schedule = "aws:scheduler/schedule:Schedule"
    assert {"target", "flexibleTimeWindow"} <= set(
        faults(schedule, {"scheduleExpression": "at(2027-01-01T00:00:00)"})
    )
    group = "aws:ec2/securityGroup:SecurityGroup"
    assert "cannot begin with sg-" in faults(group, {"name": "sg-hosts"})["name"]


@pytest.mark.parametrize("token", sorted(KINDS))
def test_every_type_that_is_carried_exists_in_the_installed_package(token: str) -> None:
    assert "notAField" in faults(token, {"notAField": 1})
