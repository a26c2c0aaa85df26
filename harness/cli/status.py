"""harness status: what is done, what runs, what comes next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness import watching
from harness.cli.app import DEFAULT_RUNS, AsJson, Runs, app, clock, finish, with_runs
from harness.display.fleet import fleet_lines
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.display.sanitize import clean
from harness.display.status import status_tables, status_value
from harness.errors import BadInput, HarnessError
from harness.finding import plan_name
from harness.journal import Entry, read_entries
from harness.launch.standing import Standing, open_fleets
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
    """Say where the newest run of each plan, and each fleet, stands. Changes nothing."""

    def work(progress: Progress) -> None:
        fleets, broken = _fleets(runs.resolve(), name)
        places = _places(runs.resolve(), name, broken, needed=not fleets)
        rows = []
        for place in places:
            try:
                rows.append(_row(place))
            except HarnessError as found:
                broken.append(BadInput(found.what, where=found.where))
            except (KeyError, TypeError, ValueError):
                broken.append(BadInput("its receipts are not ours", where=str(place.folder)))
        if as_json:
            wrong = [{"damaged": error.where, "what": error.what} for error in broken]
            stand = [each.to_json() for each in fleets]
            print_json([*(status_value(*row) for row in rows), *stand, *wrong])
        else:
            for row in rows:
                show(status_tables(*row))
            for each in fleets:
                show(fleet_lines(each, lambda text: with_runs(text, runs)))
            for error in broken if rows or fleets else ():
                typer.echo(clean(f"damaged: {error.sentence()}"), err=True)
        if broken and not rows and not fleets and not as_json:
            raise broken[0]
        if broken and not rows and not fleets:
            raise typer.Exit(broken[0].exit_code)

    finish(work, as_json=as_json, runs=runs)


def _fleets(runs: Path, name: str) -> tuple[tuple[Standing, ...], list[HarnessError]]:
    """Fleets that are not ended, by their own folders, and what is wrong with a damaged one."""
    try:
        return open_fleets(runs, name, clock()), []
    except HarnessError as error:
        return (), [error]


def _places(runs: Path, name: str, broken: list[HarnessError], *, needed: bool) -> list[Place]:
    """The newest runs; `broken` is told of damaged ones. Raises BadInput when there is nothing."""
    try:
        places, damaged = watching.look(runs, name)
    except BadInput:
        if needed and not broken:
            raise
        return []
    broken += damaged
    return places


def _row(place: Place) -> tuple[str, list[Entry], list[str], str]:
    journal = place.folder / "journal.jsonl"
    if (place.folder / "receipts").exists() and not journal.exists():
        raise BadInput("this run has receipts and no journal", where=str(journal))
    entries, _ = read_entries(journal)
    status_value("", entries, (), "")  # raises for receipts that are not ours
    jobs, deadline = watching.running(place)
    return f"{place.record.plan}  run {place.record.run}", entries, jobs, deadline
