"""harness access: another operator's address, for a laptop that moved."""

from __future__ import annotations

import typer

from harness.cli.admit import Address
from harness.cli.app import DEFAULT_RUNS, AsJson, PlanFile, Runs, app, clock, finish
from harness.display.output import print_json
from harness.display.progress import Progress
from harness.errors import BadInput, command
from harness.launch.fleets import fleet_of_plan
from harness.plan import load_plan


@app.command()
def access(
    plan: PlanFile,
    address: Address = "auto",
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """Admit SSH from this address only, in the cloud and in the stack's configuration."""

    def work(progress: Progress) -> None:
        loaded, folder = load_plan(plan), runs.resolve()
        place = fleet_of_plan(folder, loaded.hash)
        if place is None:
            raise BadInput(
                "no fleet of this plan is there",
                where=str(folder / "fleets"),
                next_command=command("admit", plan),
            )
        from harness.cloud.clients import Aws
        from harness.launch.access import admit_from
        from harness.launch.drive import driving
        from harness.launch.operator import operator_cidr

        cidr = operator_cidr(address)
        aws = Aws(place.admitted.region, clock=clock())
        with driving(place, aws, clock(), progress.note) as drive:
            changed = admit_from(drive, cidr)
        progress.close()
        if as_json:
            print_json({"fleet": place.admitted.fleet, "address": cidr, "rules": changed})
            return
        typer.echo(f"SSH is admitted from {cidr} only ({changed} rule(s) changed).")

    finish(work, as_json=as_json, runs=runs)
