"""harness sweep: what dead runs left on AWS, by tag; removed when asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.app import DEFAULT_RUNS, AsJson, Runs, app, clock, finish
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.display.sweep import removed_table, sweep_table
from harness.errors import BadInput, Leaked, command
from harness.fleet.admitted import AdmittedFleet
from harness.launch.standing import in_use
from harness.strict import load_file

if TYPE_CHECKING:
    from harness.cloud.sweep import FleetLeft

DEFAULT_REGION = "us-east-1"


@app.command()
def sweep(
    fleet: Annotated[str, typer.Option("--fleet", help="Only this fleet.")] = "",
    region: Annotated[
        list[str] | None,
        typer.Option("--region", help="Region to look in; repeatable. Absent: all that were used."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove what is left of the fleet named.")
    ] = False,
    abandon: Annotated[
        str, typer.Option("--abandon", help="Why hosts that may be in use are ended.")
    ] = "",
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """List all that carries a fleet's tag. Exit 5 when anything that costs money is left over."""

    def work(progress: Progress) -> None:
        from harness.cloud.clients import Aws
        from harness.cloud.sweep import find
        from harness.cloud.sweep import sweep as sweep_fleet

        if remove and not fleet:
            raise BadInput(
                "--remove needs --fleet: one fleet is removed at a time",
                next_command=command("sweep"),
            )
        regions = tuple(region or _touched(runs))
        aws = Aws(regions[0], clock=clock())
        found = find(aws, regions, fleet)
        if not remove:
            used = {
                each.fleet: known
                for each in found
                if (known := in_use(runs.resolve(), each.fleet, _ids(each), aws.clock))
            }
            if as_json:
                print_json([each.to_json() for each in found])
            else:
                show(sweep_table(found, regions, aws.clock, used))
            billed = [
                thing for each in found for thing in each.left
                if thing.costs and each.fleet not in used
            ]  # fmt: skip
            if billed:
                raise Leaked(
                    f"{len(billed)} thing(s) that cost money are there: {billed[0].sentence()}",
                    where=billed[0].fleet,
                    next_command=command("sweep", "--fleet", billed[0].fleet, "--remove"),
                )
            return
        for each in found:
            swept = sweep_fleet(aws, each, regions, abandon=abandon)
            if as_json:
                print_json(swept.to_json())
            else:
                show(removed_table(swept))
        if not found and not as_json:
            show(sweep_table(found, regions, aws.clock))

    finish(work, as_json=as_json)


def _ids(found: FleetLeft) -> tuple[str, ...]:
    return tuple(host.id for host in found.hosts)


def _touched(runs: Path) -> tuple[str, ...]:
    """Every region that a fleet of this folder was admitted to, else the usual one."""
    admitted = sorted((runs / "fleets").glob("*/admitted.json"))
    used = dict.fromkeys(load_file(AdmittedFleet, path).region for path in admitted)
    return tuple(used) or (DEFAULT_REGION,)
