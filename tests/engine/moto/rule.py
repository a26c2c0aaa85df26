"""What a rule is: one way in which AWS behaves and moto does not, with AWS's page for it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, ClassVar
from xml.etree import ElementTree

from moto.ec2.models import ec2_backends

from tests.engine.moto.call import Answer, Call

ACCOUNT = "123456789012"
"""moto's."""


@dataclass
class World:
    """moto's own state, and a clock that tests may move on."""

    skew: float = 0.0

    def now(self) -> float:
        """Seconds; only differences mean something."""
        return time.monotonic() + self.skew

    def ec2(self, region: str) -> Any:
        """moto's EC2 of a region."""
        return ec2_backends[ACCOUNT][region]

    def instances(self, region: str) -> dict[str, Any]:
        """moto's instances by id."""
        found = self.ec2(region).reservations.values()
        return {each.id: each for reservation in found for each in reservation.instances}


@dataclass
class Rule:
    """Answers in moto's place (`before`), changes an answer (`after`), or moves state on (`tick`).

    `page` is AWS's page that describes the behaviour, below docs.aws.amazon.com.
    """

    page: ClassVar[str] = ""

    def before(self, call: Call, world: World) -> Answer | None:
        """An answer in moto's place, or None."""
        return None

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        """What the caller sees of moto's answer."""
        return answer

    def tick(self, world: World) -> None:
        """Called before every request: what became due happens."""


@dataclass
class Times:
    """Which of the calls that match are hit: all, the first `times`, or those listed in `nth`."""

    times: int = -1
    nth: tuple[int, ...] = ()
    """From 1."""
    seen: int = field(default=0, init=False)

    def hit(self) -> bool:
        """Count one matching call."""
        self.seen += 1
        if self.nth:
            return self.seen in self.nth
        return self.times < 0 or self.seen <= self.times


def tree(answer: Answer) -> ElementTree.Element:
    """The answer's XML, its names without their space."""
    root = ElementTree.fromstring(answer.body)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def from_tree(answer: Answer, root: ElementTree.Element) -> Answer:
    """The answer with another body."""
    headers = tuple(pair for pair in answer.headers if pair[0].lower() != "content-length")
    return Answer(answer.status, headers, ElementTree.tostring(root))


def zone_of(call: Call, world: World) -> str:
    """The zone that a RunInstances names by subnet or placement."""
    subnet = call.params.get("SubnetId") or call.params.get("NetworkInterface.1.SubnetId")
    if subnet:
        return str(world.ec2(call.region).get_subnet(subnet).availability_zone)
    return str(call.params.get("Placement.AvailabilityZone", f"{call.region}a"))
