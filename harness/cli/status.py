"""harness status: what is done, what runs, what comes next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import DEFAULT_RUNS, AsJson, Runs, app, finish
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.display.status import status_tables, status_value
from harness.errors import BadInput
from harness.journal import Entry, read_entries
from harness.run import Place, RunRecord, still_running
from harness.strict import load_file


@app.command()
def status(
    name: Annotated[str, typer.Argument(help="Plan name; absent: all of them.")] = "",
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """Say where the newest run of each plan stands. Reads files only."""

    def work(progress: Progress) -> None:
        rows = [_row(place) for place in _newest(runs.resolve(), name)]
        if as_json:
            print_json([status_value(*row) for row in rows])
        else:
            for row in rows:
                show(status_tables(*row))

    finish(work, as_json=as_json, runs=runs)


def _row(place: Place) -> tuple[str, list[Entry], list[str], str]:
    entries, _ = read_entries(place.folder / "journal.jsonl")
    jobs, deadline = still_running(place)
    return f"{place.record.plan}  run {place.record.run}", entries, jobs, deadline


def _newest(runs: Path, name: str) -> list[Place]:
    folders = [runs / name] if name else sorted(p for p in runs.glob("*") if p.is_dir())
    found = []
    for folder in folders:
        link = folder / "latest"
        if (link / "run.json").exists():
            found.append(Place(link.resolve(), load_file(RunRecord, link / "run.json")))
    if not found:
        raise BadInput(
            f"there is no run of '{name}'" if name else "there are no runs",
            where=str(runs),
            next_command="harness run plans/quickstart/plan.json --local",
        )
    return found
