"""harness cost: what a fleet cost at most, final once nothing is left, beside the bill if given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.app import AsJson, app, clock, finish
from harness.cost.billing import read_export
from harness.cost.reconcile import reconcile, require_within
from harness.cost.resources import finalised
from harness.display.cost import cost_table, reconciliation_table
from harness.display.fleet import money_line
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.errors import BadInput, HarnessError, Leaked, Waiting, command
from harness.launch.standing import Standing, in_use
from harness.results import Resources
from harness.strict import load_file
from trainer import contract

if TYPE_CHECKING:
    from harness.cloud.left import Left


@app.command()
def cost(
    resources: Annotated[
        Path, typer.Argument(help="resources.json of a fleet or run, or its folder.")
    ],
    bill: Annotated[
        Path | None,
        typer.Option("--reconcile", help="CUR or Data Exports file (.csv, .csv.gz, .parquet)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the bound line by line. Looks once more for what is left, and makes it final."""

    def work(progress: Progress) -> None:
        path = resources / "resources.json" if resources.is_dir() else resources
        found = load_file(Resources, path, next_command="harness status")
        if bill is not None:
            result = reconcile(found, read_export(bill, found.fleet))
            if as_json:
                print_json(result.to_json())
            else:
                show(reconciliation_table(result))
            require_within(result, str(bill))
            return
        left: HarnessError | None = None
        used: Standing | None = None
        if found.fleet_kind == "stack" and found.state != "final":
            found, left, used = _look(found, path)
        if as_json:
            print_json(found.to_json())
        else:
            show(cost_table(found))
            if used is not None:
                typer.echo(f"In use until its deadline: it {money_line(used)}.")
        if left is not None:
            raise left

    finish(work, as_json=as_json)


def _look(found: Resources, path: Path) -> tuple[Resources, HarnessError | None, Standing | None]:
    """Search all regions; the file is written again with what was seen.

    Returns what is left as an error, or the fleet that is there because it is in use.
    """
    from harness.cloud.clients import Aws
    from harness.cloud.left import Known
    from harness.cloud.residue import residue
    from harness.launch import closing
    from harness.launch.fleets import open_place

    if not found.regions:
        raise BadInput(
            "it names no region, so nobody can look for what is left",
            where=f"{path}#/regions",
            next_command=command("sweep", "--fleet", found.fleet),
        )
    known = Known(
        instances=tuple(host.id for host in found.hosts if host.id),
        volumes=tuple(volume.id for volume in found.volumes or ()),
    )
    aws = Aws(found.regions[0], clock=clock())
    left = residue(aws, found.fleet, regions=found.regions, known=known)
    hosts = tuple(each.id for each in left if each.kind == "instance")
    runs = path.resolve().parents[2] if len(path.resolve().parents) > 2 else path.parent
    used = in_use(runs, found.fleet, hosts, aws.clock) if hosts else None
    if used is not None and (path.parent / "admitted.json").exists():  # studies joined meanwhile
        found = closing.resources(open_place(path.parent), aws.clock.utc())
    seen = finalised(found, left, aws.clock.utc(), in_use=used is not None)
    contract.write_json(path, seen.to_json())
    if used is not None or not left:
        return seen, None, used
    return seen, _still_there(found.fleet, left), None


def _still_there(fleet: str, left: Sequence[Left]) -> HarnessError:
    billed = [each for each in left if each.costs]
    if billed:
        return Leaked(
            f"{len(billed)} thing(s) that cost money are still there: {billed[0].sentence()}",
            where=fleet,
            next_command=command("sweep", "--fleet", fleet, "--remove"),
        )
    return Waiting(
        f"the stack is still there ({len(left)} thing(s) that cost nothing by themselves)",
        where=fleet,
        next_command="pulumi destroy",
    )
