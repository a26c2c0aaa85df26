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
from harness.errors import BadInput, HarnessError
from harness.finding import plan_name
from harness.journal import Entry, read_entries
from harness.run import Place


@app.command()
def status(
    name: Annotated[
        str,
        typer.Argument(
            help="A plan, by name or path; absent: all of them.", parser=plan_name, metavar="PLAN"
        ),
    ] = "",
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """Say where the newest run of each plan stands. Changes nothing."""

    def work(progress: Progress) -> None:
        places, damaged = watching.look(runs.resolve(), name)
        rows, broken = [], list(damaged)
        for place in places:
            try:
                rows.append(_row(place))
            except HarnessError as found:
                broken.append(BadInput(found.what, where=found.where))
            except (KeyError, TypeError, ValueError):
                broken.append(BadInput("its receipts are not ours", where=str(place.folder)))
        if as_json:
            wrong = [{"damaged": error.where, "what": error.what} for error in broken]
            print_json([*(status_value(*row) for row in rows), *wrong])
        else:
            for row in rows:
                show(status_tables(*row))
            for error in broken if rows else ():
                typer.echo(clean(f"damaged: {error.sentence()}"), err=True)
        if broken and not rows and not as_json:
            raise broken[0]
        if broken and not rows:
            raise typer.Exit(broken[0].exit_code)

    finish(work, as_json=as_json, runs=runs)


def _row(place: Place) -> tuple[str, list[Entry], list[str], str]:
    journal = place.folder / "journal.jsonl"
    if (place.folder / "receipts").exists() and not journal.exists():
        raise BadInput("this run has receipts and no journal", where=str(journal))
    entries, _ = read_entries(journal)
    status_value("", entries, (), "")  # raises for receipts that are not ours
    jobs, deadline = watching.running(place)
    return f"{place.record.plan}  run {place.record.run}", entries, jobs, deadline
