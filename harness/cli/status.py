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
from harness.journal import read_entries
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
        found = _newest(runs.resolve(), name)
        if as_json:
            print_json([status_value(*each) for each in found])
        else:
            for each in found:
                show(status_tables(*each))

    finish(work, as_json=as_json)


def _newest(runs: Path, name: str) -> list[tuple[Place, list[str], str]]:
    folders = [runs / name] if name else sorted(p for p in runs.glob("*") if p.is_dir())
    found = []
    for folder in folders:
        link = folder / "latest"
        if (link / "run.json").exists():
            place = Place(link.resolve(), load_file(RunRecord, link / "run.json"))
            jobs, deadline = still_running(place)
            found.append((place, jobs, deadline))
    if not found:
        raise BadInput(
            f"there is no run of '{name}'" if name else "there are no runs",
            where=str(runs),
            next_command="harness run plans/quickstart/plan.json --local",
        )
    return found


