"""A fleet that stands, by its own folder: what `harness status` says, and whether it is in use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.cli import status
from harness.cli.app import app
from harness.cli.down import _abandon_runs
from harness.clock import Clock
from harness.cloud.clients import Aws
from harness.launch import closing, ending, record
from harness.launch.admit import admit_plan
from harness.launch.drive import note_disks
from harness.launch.fleets import FleetPlace, Joined, driving
from harness.launch.standing import in_use, standing
from harness.plan import LoadedPlan
from tests.unit.launch.test_wired import at, launch


def told(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(status, "clock", lambda: clock)


def run(place: FleetPlace, *words: str) -> Result:
    """The command on the fleet's runs folder, in a window of 80 columns."""
    more = ("--runs", str(place.runs))
    return CliRunner().invoke(app, [*words, *more], env={"COLUMNS": "80"})


def one_line(result: Result) -> str:
    return " ".join(result.output.split())


@pytest.fixture
def place(aws: Aws, loaded: LoadedPlan, tmp_path: Path) -> FleetPlace:
    return admit_plan(loaded, tmp_path / "runs", aws, at(0), address="198.51.100.7").place


def launched(aws: Aws, place: FleetPlace) -> list[str]:
    """A complete launch, as `harness up` records it."""
    with driving(place, at(1)) as journal:
        journal.append("intent", "up/1/0/0", {"placement": 0})
        ids = []
        for slot in range(place.admitted.count):
            journal.append("intent", f"host/1/0/{slot}/0", {"slot": slot, "placement": 0})
            ids.append(launch(aws, place, slot))
            told_of = record.Launched(slot=slot, instance_id=ids[-1])
            journal.append("outcome", f"host/1/0/{slot}/0", told_of.to_json())
        assert standing(place, at(2)).state == "launching, or stopped while it did"
        done = record.Tried(
            placement=0, result="complete", launched=tuple(ids), began_utc=at(1).utc(),
            ended_utc=at(2).utc(),
        )  # fmt: skip
        journal.append("outcome", "up/1/0/0", done.to_json())
    note_disks(place, ending.seen(aws, place.admitted))
    closing.write(place, at(2).utc())
    return ids


def test_a_fleet_is_shown_before_any_run_has_joined_it(
    aws: Aws, place: FleetPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(monkeypatch, at(1))
    admitted = run(place, "status")
    assert admitted.exit_code == 0, admitted.output
    said = one_line(admitted)
    assert f"fleet {place.admitted.fleet} of study toy: admitted" in said
    assert "costs nothing now, $3.73 an hour once it stands; at most $" in said
    assert f"next: harness up {place.admitted.plan_path} --runs {place.runs}" in said

    ids = launched(aws, place)
    told(monkeypatch, at(3))
    stands = run(place, "status", "toy")
    said = one_line(stands)
    assert ": stands" in said and "studies: none has joined yet" in said
    assert f"host-0 {ids[0]} g6e.xlarge us-east-1a host-1 {ids[1]} g6e.xlarge us-east-1b" in said
    assert "costs $3.73 an hour; at most $" in said and "of the ceiling $60" in said
    assert f"next: harness run {place.admitted.plan_path}" in said
    assert max(len(line) for line in stands.output.splitlines() if " " in line) <= 80
    resources = place.resources()
    assert resources is not None
    disks = [line for line in resources.lines if line.what.startswith("volume vol-")]
    assert len(disks) == 2, "disks cost from the start"
    (value,) = json.loads(run(place, "status", "--json").output)
    assert (value["state"], value["deadline_utc"]) == ("stands", place.admitted.deadline_utc)
    assert run(place, "status", "another").exit_code == 2

    with driving(place, at(4)) as journal:
        record.write_release(journal, record.Released(basis="abandoned", why="a test"))
    assert ": gate open" in one_line(run(place, "status"))
    told(monkeypatch, at(10**6))
    past = one_line(run(place, "status"))
    assert ": past its deadline" in past and "next: harness down" in past


def test_a_fleet_is_in_use_while_it_stands_as_its_journal_says(aws: Aws, place: FleetPlace) -> None:
    name, runs = place.admitted.fleet, place.runs
    assert in_use(runs, name, (), at(1)) is None, "admitted only"
    ids = launched(aws, place)
    assert in_use(runs, name, ids, at(3)) is not None
    assert in_use(runs, name, [*ids, "i-unknown"], at(3)) is None, "a host nobody recorded"
    assert in_use(runs, name, ids, at(10**6)) is None, "past its deadline"
    assert in_use(runs, "another", (), at(3)) is None
    assert in_use(runs.parent, name, ids, at(3)) is None, "not admitted on this computer"
    with driving(place, at(4)) as journal:
        record.write_release(journal, record.Released(basis="abandoned", why="a test"))
    assert in_use(runs, name, ids, at(5)) is None, "its gate is open"


class Told:
    """A progress that keeps its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_study_whose_plan_was_changed_keeps_no_host_alive(
    place: FleetPlace, loaded: LoadedPlan
) -> None:
    folder = place.runs / "toy" / "20261130-000000-aaaa"
    joined = Joined(
        run=folder.name, plan=str(loaded.path), plan_hash=loaded.hash, folder=str(folder)
    )
    with driving(place, at(1)) as journal:
        journal.note("study", joined.to_json())
    loaded.path.write_text(loaded.path.read_text().replace("toy-1", "toy-2"))
    progress: Any = Told()
    _abandon_runs(place, progress, "no time left")
    (note,) = progress.notes
    assert f"the run {folder.name} is not told" in note and "no unfinished run" in note
