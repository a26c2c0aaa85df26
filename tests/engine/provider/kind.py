"""What the test provider knows of one resource type."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from botocore.exceptions import ClientError

Values = dict[str, Any]
T = TypeVar("T")
WAIT_S = 90.0
"""Longest wait for the cloud to come round; the real provider waits longer."""


class Cloud(Protocol):
    """Boto3 clients of the region that the provider was configured with."""

    region: str

    def client(self, service: str) -> Any:
        """A client without retries."""


class HalfMade(Exception):
    """The resource exists and is not what was asked for: its id goes into the state."""

    def __init__(self, resource_id: str, why: str) -> None:
        super().__init__(why)
        self.resource_id = resource_id


@dataclass(frozen=True)
class Kind:
    """How a type is carried to the cloud. Inputs and outputs have the names of the wire."""

    token: str
    create: Callable[[Cloud, Values], str]
    """Inputs to id."""
    read: Callable[[Cloud, str, Values], Values | None]
    """Id and what is known to what the cloud says: computed outputs, and inputs that it can tell.
    None: it is gone."""
    delete: Callable[[Cloud, str, Values], None]
    update: Callable[[Cloud, str, Values, Values], None] | None = None
    """Id, old and new inputs."""
    changeable: frozenset[str] = frozenset({"tags"})
    """Inputs that are updated in place; a change of another one replaces."""
    autoname: str = ""
    """The input that is named after the resource when it is absent."""
    refuse: Callable[[Values], Iterable[tuple[str, str]]] = field(default=lambda _: ())
    """What the real provider refuses beyond names and types."""


def code(error: ClientError) -> str:
    """AWS's error code."""
    return str(error.response["Error"]["Code"])


def found(look: Callable[[], T], *gone: str) -> T | None:
    """What `look` finds; None for one of the codes that mean 'there is none'."""
    try:
        return look()
    except ClientError as error:
        if code(error) in gone:
            return None
        raise


def patiently(act: Callable[[], object], *again: str, gone: tuple[str, ...] = ()) -> None:
    """Do it; while the cloud answers one of `again`, wait; one of `gone` is as good as done."""
    until = time.monotonic() + WAIT_S
    while True:
        try:
            act()
            return
        except ClientError as error:
            if code(error) in gone:
                return
            if code(error) not in again or time.monotonic() > until:
                raise
        time.sleep(0.2)


def ec2_tags(inputs: Values, kind: str) -> list[Values]:
    """TagSpecifications of a create call."""
    listed = aws_tags(inputs.get("tags"))
    return [{"ResourceType": kind, "Tags": listed}] if listed else []


def aws_tags(tags: Values | None) -> list[Values]:
    """A map as AWS lists tags."""
    return [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]


def retag(cloud: Cloud, resource_id: str, old: Values, new: Values) -> None:
    """Update of a thing of EC2 whose tags are all that may change."""
    before, after = old.get("tags") or {}, new.get("tags") or {}
    ec2 = cloud.client("ec2")
    if removed := [{"Key": key} for key in before if key not in after]:
        ec2.delete_tags(Resources=[resource_id], Tags=removed)
    if after:
        ec2.create_tags(Resources=[resource_id], Tags=aws_tags(after))


def seen_tags(listed: Iterable[Values] | None) -> Values:
    """AWS's list of tags as a map."""
    return {each["Key"]: each["Value"] for each in listed or ()}
