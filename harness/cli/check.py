"""harness check: what is wrong, what it costs at most, how long it takes."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.app import AsJson, PlanFile, app, finish
from harness.display.check import check_tables
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.errors import BadInput
from harness.plan import load_plan
from harness.plan.check import check_plan, require_sound
from harness.prepared import Prepared
from harness.prices import load_prices
from harness.strict import load_file


@app.command()
def check(
    plan: PlanFile,
    local: Annotated[
        bool, typer.Option("--local", help="Check for workers on this computer.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what is declared, the worst-case cost and the predicted times. Exit 2 on an error."""

    def work(progress: Progress) -> None:
        loaded = load_plan(plan)
        aws = None if local else loaded.plan.hosts.aws
        prepared_path = loaded.folder / "prepared.json"
        prepared = load_file(Prepared, prepared_path) if prepared_path.exists() else None
        if prepared is not None and prepared.plan_hash != loaded.hash:
            prepared = None
        report = check_plan(
            loaded,
            prices=load_prices(aws.region) if aws else None,
            fleet_kind="stack" if aws else "local",
            prepared=prepared,
        )
        if as_json:
            print_json(report.to_json())
            if report.errors:  # they are in the value: a second one would break the first
                raise typer.Exit(BadInput.exit_code)
            return
        show(check_tables(report))
        require_sound(report)

    finish(work, as_json=as_json)
