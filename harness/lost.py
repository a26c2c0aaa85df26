"""Hosts that are gone for good: recorded with proof, and never asked again.

What only such a host held is lost, and the gate may open without it (invariant 5). The proof is the
cloud's own word for hosts of a stack; for machines of the user's own it is the user's statement,
which is refused while the machine answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import BadInput
from harness.journal import Entry
from harness.plan.kinds import Text
from harness.strict import Model, build

PREFIX = "lost/"


class LostHost(Model):
    """Outcome of recording a loss."""

    host: Text
    why: Text
    """In the user's words."""
    proof: Text

    def sentence(self) -> str:
        """For errors, receipts and the report."""
        return f"{self.host} is gone for good: {self.why} ({self.proof})"


def lost_hosts(entries: Sequence[Entry]) -> dict[str, LostHost]:
    """By name, from a run's journal."""
    return {
        entry.key.removeprefix(PREFIX): build(LostHost, entry.data, where=f"entry {entry.seq}")
        for entry in entries
        if entry.kind == "outcome" and entry.key.startswith(PREFIX)
    }


def parse_statement(text: str) -> tuple[str, str]:
    """('host-1', 'why') from 'host-1: why'. Raises BadInput."""
    name, colon, why = text.partition(":")
    if not colon or not name.strip() or not why.strip():
        raise BadInput("say which host and why: --lost 'host-1: its disk died'", where="--lost")
    return name.strip(), why.strip()
