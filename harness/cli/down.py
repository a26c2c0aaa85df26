"""harness down: everything of a fleet ended and removed, behind the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import DEFAULT_RUNS, AsJson, PlanFile, Runs, app, clock, finish
from harness.cli.up import still_there
from harness.display import words
from harness.display.output import print_json
from harness.display.progress import Progress
from harness.errors import BadInput, command
from harness.launch.fleets import FleetPlace, fleet_named, fleet_of_plan, fleet_places
from harness.plan import LoadedPlan, load_plan
from harness.results import Resources


@app.command()
def down(
    plan: PlanFile,
    abandon: Annotated[
        str | None, typer.Option("--abandon", help="Give up what is not preserved, and say why.")
    ] = None,
    fleet: Annotated[
        str | None, typer.Option("--fleet", help="This fleet, not the newest of the plan.")
    ] = None,
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """End the hosts, remove the stack, search for what is left, and make the cost final."""

    def work(progress: Progress) -> None:
        loaded, folder = load_plan(plan), runs.resolve()
        if abandon is not None and not abandon.strip():
            raise BadInput("--abandon needs a reason, which the record keeps", where="--abandon")
        place = fleet_named(folder, fleet) if fleet else _fleet(loaded, folder)
        if abandon:
            _abandon_runs(place, progress, abandon)
        resources = _down(loaded, place, progress, abandon or "")
        progress.close()
        if as_json:
            print_json(resources.to_json())
            return
        typer.echo(
            f"{resources.fleet} is gone; only its bucket is kept. At most "
            f"{words.money_up(resources.total_bound_usd)} of "
            f"{words.money_up(resources.ceiling_usd)}: {place.folder / 'resources.json'}"
        )

    finish(work, as_json=as_json, runs=runs, still_runs=lambda: still_there(plan, runs, "down"))


def _fleet(loaded: LoadedPlan, runs: Path) -> FleetPlace:
    """The fleet of the plan, one of the same study, or the last one that is gone already: a command
    that was killed at its last step may be typed again. Raises BadInput when there is none."""
    found = fleet_of_plan(runs, loaded.hash)
    if found is not None:
        return found
    same = [place for place in fleet_places(runs) if place.admitted.study == loaded.plan.name]
    if same:
        return ([place for place in same if not place.final] or same)[-1]
    raise BadInput(
        "no fleet of this plan is there",
        where=str(runs / "fleets"),
        next_command=command("sweep"),
    )


def _down(loaded: LoadedPlan, place: FleetPlace, progress: Progress, abandon: str) -> Resources:
    from harness.cloud.clients import Aws
    from harness.launch.down import down as take_down
    from harness.launch.drive import driving

    aws = Aws(place.admitted.region, clock=clock())
    with driving(place, aws, clock(), progress.note) as drive:
        return take_down(drive, abandon=abandon)


def _abandon_runs(place: FleetPlace, progress: Progress, why: str) -> None:
    """Every unfinished study of the fleet records that it was given up, and why. One whose plan was
    changed or removed since cannot, which must not keep its hosts alive."""
    from harness.fleet.choice import FleetChoice
    from harness.launch import preserved
    from harness.run import abandon_run

    for study in place.studies():
        if not preserved.why_not(study):
            continue
        try:
            abandon_run(
                load_plan(Path(study.plan)), Path(study.folder).parents[1], progress, clock(), why,
                choice=FleetChoice("stack", fleet=place.admitted.fleet),
            )  # fmt: skip
        except BadInput as error:
            progress.note(
                f"the run {study.run} is not told that it is given up ({error.what}); the fleet's "
                "journal keeps why"
            )
