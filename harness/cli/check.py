"""harness check: what is wrong, what it costs at most, how long it takes."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.app import AsJson, PlanFile, app, clock, finish
from harness.display.account import account_table
from harness.display.check import check_tables
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.errors import BadInput
from harness.plan import load_plan
from harness.plan.check import CheckReport, check_plan, require_sound
from harness.plan.load import LoadedPlan
from harness.prepared import Prepared
from harness.prices import load_prices
from harness.strict import load_file


@app.command()
def check(
    plan: PlanFile,
    local: Annotated[
        bool, typer.Option("--local", help="Check for workers on this computer.")
    ] = False,
    account: Annotated[
        bool, typer.Option("--account", help="Ask AWS too: permissions, quota, credentials.")
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
        if account:
            _with_account(loaded, report, as_json=as_json)
            return
        if as_json:
            print_json(report.to_json())
            if report.errors:  # they are in the value: a second one would break the first
                raise typer.Exit(BadInput.exit_code)
            return
        show(check_tables(report))
        require_sound(report)

    finish(work, as_json=as_json)


def _with_account(loaded: LoadedPlan, report: CheckReport, *, as_json: bool) -> None:
    """The plan's check, then the account's. Raises Refused for what the account may not do."""
    from harness.cloud.account import check_account, require_able
    from harness.cloud.clients import Aws

    hosts = loaded.plan.hosts.aws
    if hosts is None:
        raise BadInput("the plan declares no AWS hosts", where=f"{loaded.path}#/hosts/aws")
    aws = Aws(hosts.region, clock=clock())
    found = check_account(aws, hosts, loaded.plan.budget.deadline_s)
    if as_json:
        print_json({**report.to_json(), "account": found.to_json()})
        if report.errors:
            raise typer.Exit(BadInput.exit_code)
    else:
        show(check_tables(report))
        show(account_table(found))
        require_sound(report)
    require_able(found)
