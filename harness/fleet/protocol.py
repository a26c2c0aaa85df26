"""The seam `FleetSource`: hosts that were launched together, under one deadline."""

from __future__ import annotations

from typing import Literal, Protocol

from harness.hosts.protocol import Host
from harness.strict import Model


class Deadline(Model):
    """One of the two deadlines of a fleet."""

    kind: Literal["inner", "outer"]
    applies: bool
    at_utc: str | None = None
    armed: bool
    """Read back and found working."""
    proof: str
    """What was read back, or why it does not apply."""


class FleetSource(Protocol):
    """Where hosts come from (stack outputs | hosts file | this computer)."""

    @property
    def kind(self) -> str:
        """'local', 'hosts-file' or 'stack'."""

    @property
    def id(self) -> str:
        """The fleet's identifier."""

    @property
    def deadline_utc(self) -> str:
        """Absolute; never moves."""

    def hosts(self) -> tuple[Host, ...]:
        """The hosts in slot order."""

    def arm_deadlines(self) -> None:
        """Arm what is this side's to arm (the local watchdog); idempotent."""

    def deadlines(self) -> tuple[Deadline, ...]:
        """Both deadlines, read back now."""

    def notes(self) -> tuple[str, ...]:
        """What the record should say of these hosts besides, a sentence each."""

    def proof_of_loss(self, name: str) -> str:
        """What proves that a host and its disk are gone for good. Raises Refused without proof."""

    def end(self) -> tuple[str, ...]:
        """End every host of the fleet; idempotent. Returns one sentence a host."""

    def residue(self) -> tuple[str, ...]:
        """What of the fleet is still there, by name; empty when nothing is."""

    def close(self) -> None:
        """Close this side's connections; nothing on the hosts changes. Safe to call twice."""
