"""What may be left of a fleet, in the order in which it can be removed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.fleet.tags import FLEET, STUDY
from harness.plan.kinds import Text
from harness.strict import Model

Kind = Literal[
    "instance", "volume", "schedule", "schedule group", "address", "interface", "VPC endpoint",
    "security group", "subnet", "route table", "internet gateway", "VPC", "placement group",
    "key pair", "instance profile", "role",
]  # fmt: skip
ORDER: tuple[Kind, ...] = (
    "instance", "volume", "schedule", "schedule group", "address", "interface", "VPC endpoint",
    "security group", "subnet", "route table", "internet gateway", "VPC", "placement group",
    "key pair", "instance profile", "role",
)  # fmt: skip
"""Schedules hold the outer deadline: they go only when no host is left."""
COSTS: frozenset[Kind] = frozenset({"instance", "volume", "address"})
"""Kinds that AWS bills for as long as they are there."""


class Left(Model):
    """One thing of a fleet that AWS still shows."""

    kind: Kind
    id: Text
    """AWS's id; 'group/name' of a schedule; the name of what has no id."""
    region: Text
    fleet: str
    why: Text
    """How it was found: 'tag', or what it is attached to."""
    state: str = ""
    tags: dict[str, str] = Field(default_factory=dict)

    @property
    def costs(self) -> bool:
        """Whether it is billed while it is there."""
        return self.kind in COSTS

    @property
    def study(self) -> str:
        """The study by tag, '' when it has none."""
        return self.tags.get(STUDY, "")

    @property
    def expires_utc(self) -> str:
        """The fleet's deadline by tag, '' when it has none."""
        return self.tags.get("ExpiresAt", "")

    def sentence(self) -> str:
        """As residue is named to a person."""
        state = f" ({self.state})" if self.state else ""
        return f"{self.kind} {self.id}{state} in {self.region}, found by {self.why}"


class Known(Model):
    """Ids that the journal or resources.json names, which carry no tag or may have lost it."""

    instances: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def by_order(left: tuple[Left, ...]) -> tuple[Left, ...]:
    """In the order of removal, then by id."""
    return tuple(sorted(left, key=lambda each: (ORDER.index(each.kind), each.region, each.id)))


def fleet_of(tags: dict[str, str]) -> str:
    """The fleet that tags name."""
    return tags.get(FLEET, "")
