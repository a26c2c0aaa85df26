"""What a fleet's journal says: placements tried, hosts launched and ended, the gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from harness.cloud.left import Left
from harness.fleet.admitted import AdmittedFleet
from harness.journal import Entry, Journal
from harness.plan.kinds import CountOrZero, Text
from harness.strict import Model, build

UP, HOST, END, OUTER = "up", "host", "end", "outer"
LOOK, JOINED_BOUND = "look", "joined-bound"

Ending = Literal["complete", "no capacity", "configuration", "unhealthy", "failed", "interrupted"]


class Tried(Model):
    """Outcome of one try at a placement."""

    placement: CountOrZero
    result: Ending
    why: str = ""
    launched: tuple[str, ...] = ()
    """Ids of the hosts that existed in it, ended ones too."""
    began_utc: str
    ended_utc: str


class Launched(Model):
    """Outcome of one host's launch."""

    slot: CountOrZero
    instance_id: str


class Released(Model):
    """The gate is open for what was launched before this entry."""

    basis: Literal["preserved", "abandoned", "nothing to preserve"]
    why: Text


def tries(entries: list[Entry]) -> list[Tried]:
    """Every try that ended, in order."""
    return [
        build(Tried, entry.data, where=f"fleet journal entry {entry.seq}")
        for entry in entries
        if entry.kind == "outcome" and entry.key.startswith(f"{UP}/")
    ]


def open_try(entries: list[Entry]) -> str | None:
    """The key of a try that was begun and has no outcome."""
    begun = [e.key for e in entries if e.kind == "intent" and e.key.startswith(f"{UP}/")]
    ended = {e.key for e in entries if e.kind == "outcome"}
    left = [key for key in begun if key not in ended]
    return left[-1] if left else None


def placement_of(key: str) -> int:
    """The placement that a try's key names."""
    return int(key.split("/")[2])


def next_key(kind: str, admitted: AdmittedFleet, entries: list[Entry], tail: str) -> str:
    """'kind/attempt/tail/n': the n-th time."""
    start = f"{kind}/{admitted.attempt}/{tail}/"
    count = sum(1 for e in entries if e.kind == "intent" and e.key.startswith(start))
    return f"{start}{count}"


def launch_intents(entries: list[Entry], slot: int | None = None) -> list[Entry]:
    """Intents of launching hosts, of one slot when it is given."""
    found = [e for e in entries if e.kind == "intent" and e.key.startswith(f"{HOST}/")]
    return [e for e in found if slot is None or e.data["slot"] == slot]


def launched_ids(entries: list[Entry]) -> tuple[str, ...]:
    """Every id that the journal knows."""
    return tuple(
        str(e.data["instance_id"])
        for e in entries
        if e.kind == "outcome" and e.key.startswith(f"{HOST}/")
    )


def ended_ids(entries: list[Entry]) -> frozenset[str]:
    """Ids of the hosts that were seen ended."""
    return frozenset(
        str(host["id"])
        for e in entries
        if e.kind == "outcome" and e.key.startswith(f"{END}/")
        for host in e.data["hosts"]
    )


def recorded_release(entries: list[Entry]) -> Released | None:
    """The release of the hosts that were launched last; a launch after it closes the gate."""
    for entry in reversed(entries):
        if entry.kind == "intent" and entry.key.startswith((f"{UP}/", f"{HOST}/")):
            return None
        if entry.kind == "receipt" and entry.key == "release":
            return build(Released, entry.data, where=f"fleet journal entry {entry.seq}")
    return None


class Look(Model):
    """Note of a search by tag and attachment: all that AWS showed of the fleet."""

    shown: tuple[tuple[str, str], ...]
    """(kind, id) each."""


def write_look(journal: Journal, left: Iterable[Left]) -> None:
    """Record what a search found."""
    shown = tuple((each.kind, each.id) for each in left)
    journal.note(LOOK, Look(shown=shown).to_json())


def looks(entries: list[Entry]) -> list[tuple[str, Look]]:
    """Every search and when it was recorded, in order."""
    return [
        (entry.utc, build(Look, entry.data, where=f"fleet journal entry {entry.seq}"))
        for entry in entries
        if entry.kind == "note" and entry.key == LOOK
    ]


def write_release(journal: Journal, released: Released) -> None:
    """Record the release once."""
    if recorded_release(journal.entries) != released:
        journal.append("receipt", "release", released.to_json())
