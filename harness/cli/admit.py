"""harness admit: the worst case accepted, a deadline fixed, nothing launched."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.app import DEFAULT_RUNS, AsJson, PlanFile, Runs, app, clock, finish
from harness.display.admission import admission_tables
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.errors import command
from harness.plan import LoadedPlan, load_plan

if TYPE_CHECKING:
    from harness.launch.admit import Admission

Address = Annotated[
    str,
    typer.Option(
        "--address",
        help="Who may open SSH connections: A.B.C.D/32, or auto (asks checkip.amazonaws.com).",
    ),
]


@app.command()
def admit(
    plan: PlanFile,
    address: Address = "auto",
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """Accept the worst case of one launch and write the stack's configuration."""

    def work(progress: Progress) -> None:
        loaded = load_plan(plan)
        admission = admitted_now(loaded, runs.resolve(), address)
        progress.close()
        if as_json:
            print_json(admission.place.admitted.to_json())
            return
        show(admission_tables(admission.place.admitted, admission.notes, _next(plan, admission)))

    finish(work, as_json=as_json, runs=runs)


def admitted_now(loaded: LoadedPlan, runs: Path, address: str) -> Admission:
    """Admit with the user's own AWS credentials."""
    from harness.cloud.clients import Aws
    from harness.launch.admit import admit_plan

    region = loaded.plan.hosts.aws.region if loaded.plan.hosts.aws else ""
    return admit_plan(loaded, runs, Aws(region), clock(), address=address)


def _next(plan: Path, admission: Admission) -> tuple[str, ...]:
    stack = shlex.quote(admission.place.admitted.study)
    return (
        "export PULUMI_CONFIG_PASSPHRASE=   # nothing in this stack is secret",
        f"pulumi stack select --create {stack} && pulumi up",
        f"or, trying all placements: {command('up', plan)}",
        f"then: {command('run', plan)}",
    )
