"""Where a fleet stands by its own folder: nothing and nobody is asked, so that anybody may look."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from harness.admission import hourly_usd
from harness.clock import Clock
from harness.errors import HarnessError, command
from harness.launch import record
from harness.launch.fleets import FleetPlace, fleet_places, fleets_folder, open_place
from harness.plan.kinds import Money, Text
from harness.strict import Model

State = Literal[
    "admitted", "launching, or stopped while it did", "not launched", "stands", "gate open",
    "past its deadline", "ended",
]  # fmt: skip
_NEXT: dict[State, str] = {
    "admitted": "up",
    "launching, or stopped while it did": "up",
    "not launched": "up",
    "stands": "run",
    "gate open": "down",
    "past its deadline": "down",
    "ended": "admit",
}


class HostThere(Model):
    """A host that the journal says was launched last for its slot."""

    slot: int
    instance_id: Text
    type: Text
    zone: Text


class Standing(Model):
    """One fleet, as `harness status` shows it."""

    fleet: Text
    study: Text
    state: State
    hosts: tuple[HostThere, ...]
    """Launched and not known to be ended."""
    deadline_utc: Text
    hourly_usd: Money | None
    """What all its hosts cost an hour while they are there; null: not known."""
    bound_usd: Money
    """The worst case that was admitted, or what it costs at most once it was launched."""
    ceiling_usd: Money
    studies: tuple[str, ...]
    next: Text
    """The command to type."""


def state_of(place: FleetPlace, clock: Clock) -> State:
    """By journal, deadline and resources.json. Raises HarnessError for a damaged folder."""
    entries = place.entries()
    tries = record.tries(entries)
    plain = {e.data["slot"] for e in record.launch_intents(entries)}
    if place.final:
        return "ended"
    if place.expired(clock):
        return "past its deadline"
    if record.recorded_release(entries) is not None:
        return "gate open"
    if record.open_try(entries) is not None:
        return "launching, or stopped while it did"
    if tries:
        return "stands" if tries[-1].result == "complete" else "not launched"
    if not plain:
        return "admitted"
    whole = len(_there(place)) == place.admitted.count
    return "stands" if whole else "launching, or stopped while it did"


def standing(place: FleetPlace, clock: Clock) -> Standing:
    """Everything that is known of a fleet. Raises HarnessError for a damaged folder."""
    admitted, state = place.admitted, state_of(place, clock)
    found = place.resources()
    return Standing(
        fleet=admitted.fleet,
        study=admitted.study,
        state=state,
        hosts=_there(place),
        deadline_utc=admitted.deadline_utc,
        hourly_usd=hourly_usd(admitted.bound, admitted.count),
        bound_usd=found.total_bound_usd if found else admitted.bound.total_usd,
        ceiling_usd=admitted.bound.ceiling_usd,
        studies=tuple(study.run for study in place.studies()),
        next=command(_NEXT[state], admitted.plan_path),
    )


def open_fleets(runs: Path, study: str, clock: Clock) -> tuple[Standing, ...]:
    """Fleets of the runs folder that are not ended, of one study when it is named."""
    if not fleets_folder(runs).is_dir():
        return ()
    places = [p for p in fleet_places(runs) if study in ("", p.admitted.study)]
    return tuple(standing(place, clock) for place in places if not place.final)


def in_use(runs: Path, fleet: str, hosts: Iterable[str], clock: Clock) -> Standing | None:
    """The fleet, when it stands by its journal in `runs` and AWS shows no host but its own.

    null: nobody here knows it, or what it costs is not meant to be there any more.
    """
    folder = fleets_folder(runs) / fleet
    try:
        if not (folder / "admitted.json").exists():
            return None
        found = standing(open_place(folder), clock)
    except HarnessError:
        return None
    known = {host.instance_id for host in found.hosts}
    return found if found.state == "stands" and set(hosts) <= known else None


def _there(place: FleetPlace) -> tuple[HostThere, ...]:
    entries, placement = place.entries(), place.admitted.placement
    ended = record.ended_ids(entries)
    found = {}
    for e in entries:
        if e.kind == "outcome" and e.key.startswith(f"{record.HOST}/"):
            slot, name = int(e.data["slot"]), str(e.data["instance_id"])
            found[slot] = HostThere(
                slot=slot, instance_id=name, type=placement.type, zone=placement.zones[slot]
            )
    return tuple(found[slot] for slot in sorted(found) if found[slot].instance_id not in ended)
