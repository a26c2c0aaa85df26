"""The folders of fleets: runs/fleets/FLEET/ with admitted.json, journal.jsonl and the login key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.clock import Clock, parse_utc
from harness.errors import BadInput, Refused, command
from harness.fleet.admitted import AdmittedFleet
from harness.journal import Entry, Journal, read_entries
from harness.plan.kinds import Sha256
from harness.results import Resources
from harness.strict import Model, build, load_file
from trainer import contract


class Joined(Model):
    """A study that a fleet carries."""

    run: str
    plan: str
    plan_hash: Sha256
    folder: str
    """The run's folder on the operator's computer."""


@dataclass(frozen=True)
class FleetPlace:
    """One fleet's folder and what was admitted."""

    folder: Path
    admitted: AdmittedFleet

    @property
    def runs(self) -> Path:
        """The folder of runs that the fleet's folder is in."""
        return self.folder.parents[1]

    @property
    def journal_path(self) -> Path:
        """journal.jsonl of the fleet."""
        return self.folder / "journal.jsonl"

    @property
    def login_key(self) -> Path:
        """The private part of the key that hosts accept."""
        return self.folder / "login_key"

    def entries(self) -> list[Entry]:
        """The journal as it is on disk. Raises Refused when it was changed."""
        return read_entries(self.journal_path)[0]

    def resources(self) -> Resources | None:
        """resources.json, when it was written."""
        path = self.folder / "resources.json"
        return load_file(Resources, path) if path.exists() else None

    @property
    def final(self) -> bool:
        """Whether everything of the fleet is gone and its cost is final."""
        found = self.resources()
        return found is not None and found.state == "final"

    def expired(self, clock: Clock) -> bool:
        """Whether the deadline has passed."""
        return clock.now() >= parse_utc(self.admitted.deadline_utc)

    def studies(self) -> tuple[Joined, ...]:
        """The studies that joined, in order."""
        return tuple(
            build(Joined, entry.data, where=f"{self.journal_path} entry {entry.seq}")
            for entry in self.entries()
            if entry.kind == "note" and entry.key == "study"
        )

    def with_admitted(self, admitted: AdmittedFleet) -> FleetPlace:
        """The place with a changed admission (another placement or operator's address), written."""
        contract.write_json(self.folder / "admitted.json", admitted.to_json())
        return FleetPlace(self.folder, admitted)


def fleets_folder(runs: Path) -> Path:
    """Where the fleets' folders are."""
    return runs / "fleets"


def open_place(folder: Path) -> FleetPlace:
    """A fleet's folder. Raises BadInput when it holds no admission, Refused without a journal."""
    admitted = load_file(AdmittedFleet, folder / "admitted.json")
    if not (folder / "journal.jsonl").exists():
        raise Refused(
            "this fleet has no journal, so nobody knows what was started",
            where=str(folder),
            next_command=command("sweep", "--region", admitted.region),
        )
    return FleetPlace(folder, admitted)


def fleet_places(runs: Path) -> list[FleetPlace]:
    """All fleets of the runs folder, oldest first."""
    found = [open_place(path.parent) for path in fleets_folder(runs).glob("*/admitted.json")]
    return sorted(found, key=lambda place: place.entries()[0].utc)


def fleet_named(runs: Path, fleet: str) -> FleetPlace:
    """The fleet of that id. Raises BadInput, naming what is known."""
    folder = fleets_folder(runs) / fleet
    if not (folder / "admitted.json").exists():
        known = ", ".join(place.admitted.fleet for place in fleet_places(runs)) or "none"
        raise BadInput(f"no fleet '{fleet}' was admitted here (known: {known})", where=str(runs))
    return open_place(folder)


def fleet_of_plan(runs: Path, plan_hash: str) -> FleetPlace | None:
    """The newest fleet of exactly this plan that is not final."""
    same = [
        place
        for place in fleet_places(runs)
        if not place.final
        and (
            place.admitted.plan_hash == plan_hash
            or plan_hash in {each.plan_hash for each in place.studies()}
        )
    ]
    return same[-1] if same else None


@contextmanager
def driving(place: FleetPlace, clock: Clock) -> Iterator[Journal]:
    """The fleet's journal, held by this process alone. Raises Waiting when another one drives."""
    journal = Journal(place.journal_path, clock, of="fleet")
    try:
        yield journal
    finally:
        journal.close()
