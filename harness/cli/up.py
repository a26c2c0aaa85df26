"""harness up: admit, then the program of `pulumi up`, placement after placement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness.cli.admit import Address, admitted_now
from harness.cli.app import DEFAULT_RUNS, AsJson, PlanFile, Runs, app, clock, finish, with_runs
from harness.display.admission import admission_tables, hourly
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.errors import HarnessError, command
from harness.launch.fleets import FleetPlace, fleet_of_plan
from harness.plan import LoadedPlan, load_plan

if TYPE_CHECKING:
    from harness.fleet.outputs import StackOutputs


@app.command()
def up(
    plan: PlanFile,
    address: Address = "auto",
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """Stand the fleet of a plan up, trying the admitted placements in order. Resumable."""

    def work(progress: Progress) -> None:
        loaded, folder = load_plan(plan), runs.resolve()
        known = fleet_of_plan(folder, loaded.hash)
        place, outputs = launched(loaded, folder, address, progress, known, quiet=as_json)
        progress.close()
        if as_json:
            print_json(outputs.to_json())
            return
        for host in outputs.hosts:
            typer.echo(
                f"host-{host.slot}  {host.instance_id}  {host.type}  {host.zone}  "
                f"{host.public_address}"
            )
        typer.echo(
            f"{outputs.fleet} stands until {outputs.deadline_utc}; it costs "
            f"{hourly(place.admitted)}. Next: {with_runs(command('run', plan), runs)}"
        )

    finish(work, as_json=as_json, runs=runs, still_runs=lambda: still_there(plan, runs, "up"))


def launched(
    loaded: LoadedPlan, runs: Path, address: str, progress: Progress, known: FleetPlace | None,
    *, quiet: bool = False,
) -> tuple[FleetPlace, StackOutputs]:  # fmt: skip
    """Admit where no fleet is known, printing the worst case, and stand the fleet up."""
    place = known
    if place is None:
        admission = admitted_now(loaded, runs, address)
        place = admission.place
        if not quiet:
            after = (f"(launching now; to end it: {command('down', loaded.path)})",)
            show(admission_tables(place.admitted, admission.notes, after))
    return place, stand_up_now(loaded, place, progress)


def stand_up_now(loaded: LoadedPlan, place: FleetPlace, progress: Progress) -> StackOutputs:
    """Stand up with the user's own AWS credentials."""
    from harness.cloud.clients import Aws
    from harness.launch.drive import driving
    from harness.launch.up import up as stand_up

    aws = Aws(place.admitted.region, clock=clock())
    with driving(place, aws, clock(), progress.note) as drive:
        return stand_up(drive, launches=loaded.plan.budget.attempts)


def still_there(plan: Path, runs: Path, again: str) -> str:
    """After Ctrl-C: what still runs by EC2's own word, what it costs, how to go on and to end."""
    try:
        place = fleet_of_plan(runs.resolve(), load_plan(plan).hash)
        if place is None:
            return "Nothing of ours runs."
        from harness.cloud.clients import Aws
        from harness.launch import ending

        alive = ending.living(ending.seen(Aws(place.admitted.region), place.admitted))
    except HarnessError as error:
        return f"What still runs could not be asked ({error.what}): {command('sweep')}"
    on, off = (with_runs(command(each, plan), runs) for each in (again, "down"))
    if not alive:
        return f"No host of {place.admitted.fleet} runs now. Go on with: {on}. End it with: {off}"
    ids = ", ".join(host.id for host in alive)
    return (
        f"{len(alive)} host(s) still run ({ids}) and cost up to {hourly(place.admitted)} until "
        f"{place.admitted.deadline_utc}. Go on with: {on}. End them with: {off}"
    )
