"""harness status: what is done, what runs, what comes next."""

from __future__ import annotations

from typing import Annotated

import typer

from harness import watching
from harness.cli.app import DEFAULT_RUNS, AsJson, Runs, app, finish
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.display.sanitize import clean
from harness.display.status import status_tables, status_value
from harness.errors import HarnessError
from harness.journal import Entry, read_entries
from harness.run import Place


@app.command()
def status(
    name: Annotated[str, typer.Argument(help="Plan name; absent: all of them.")] = "",
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """Say where the newest run of each plan stands. Changes nothing."""

    def work(progress: Progress) -> None:
        places = watching.newest(runs.resolve(), name)
        rows, broken = [], []
        for place in places:
            try:
                rows.append(_row(place))
            except HarnessError as found:
                broken.append(found)
        if as_json:
            damaged = [{"damaged": error.where, "what": error.what} for error in broken]
            print_json([*(status_value(*row) for row in rows), *damaged])
        else:
            for row in rows:
                show(status_tables(*row))
            for error in broken:
                typer.echo(clean(f"damaged: {error.sentence()}"), err=True)
        if broken and not rows:
            raise broken[0]

    finish(work, as_json=as_json, runs=runs)


def _row(place: Place) -> tuple[str, list[Entry], list[str], str]:
    entries, _ = read_entries(place.folder / "journal.jsonl")
    jobs, deadline = watching.running(place)
    return f"{place.record.plan}  run {place.record.run}", entries, jobs, deadline
