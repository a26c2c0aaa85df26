"""harness prepare: deterministic inputs, and their identity into prepared.json."""

from __future__ import annotations

import typer

from harness import pipeline
from harness import run as runs_of
from harness.admission import FleetKind
from harness.cli.app import DEFAULT_RUNS, AsJson, PlanFile, Runs, app, clock, finish
from harness.display.output import print_json
from harness.display.progress import Progress
from harness.plan import Plan, load_plan
from harness.plan.check import check_plan, require_sound
from harness.prepared import Prepared
from harness.prices import PriceFile, load_prices
from harness.strict import load_file


@app.command()
def prepare(plan: PlanFile, runs: Runs = DEFAULT_RUNS, as_json: AsJson = False) -> None:
    """Prepare inputs into the store and write prepared.json beside the plan."""

    def work(progress: Progress) -> None:
        loaded = load_plan(plan)
        require_sound(
            check_plan(loaded, fleet_kind=_where(loaded.plan), prices=_prices(loaded.plan))
        )
        folder = runs.resolve()
        _, study = runs_of.choose_study(loaded, folder, progress, clock())
        try:
            pipeline.advance(study, pipeline.STAGES[:1])
        finally:
            study.close()
        progress.close()
        record = load_file(Prepared, study.prepared_path)
        if as_json:
            print_json({**record.to_json(), "path": str(study.prepared_path)})
            return
        typer.echo(f"Prepared identity {record.identity}")
        for arm, counts in record.arms.items():
            typer.echo(
                f"  {arm}: {counts.documents} documents, {counts.tokens} tokens, "
                f"{counts.targets} response targets, {counts.weighted_targets:g} weighted"
            )
        typer.echo(f"Wrote {study.prepared_path}. Commit it, or let `harness run` do so.")

    finish(work, as_json=as_json, runs=runs)


def _where(plan: Plan) -> FleetKind:
    """The first kind of hosts that the plan declares; inputs are the same on each."""
    if plan.hosts.local is not None:
        return "local"
    return "hosts-file" if plan.hosts.aws is None else "stack"


def _prices(plan: Plan) -> PriceFile | None:
    return load_prices(plan.hosts.aws.region) if plan.hosts.aws is not None else None
