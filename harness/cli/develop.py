"""harness develop: train and score development cases; test cases stay untouched."""

from __future__ import annotations

from harness.cli.app import DEFAULT_RUNS, AsJson, PlanFile, Runs, app, clock, finish
from harness.develop import develop as develop_plan
from harness.display.check import development_table
from harness.display.output import print_json, show
from harness.display.progress import Progress
from harness.plan import load_plan


@app.command()
def develop(plan: PlanFile, runs: Runs = DEFAULT_RUNS, as_json: AsJson = False) -> None:
    """Train the arms on this computer and score development cases, to choose settings."""

    def work(progress: Progress) -> None:
        found = develop_plan(load_plan(plan), runs.resolve(), progress, clock())
        progress.close()
        if as_json:
            print_json(found.to_json())
        else:
            show(development_table(found))

    finish(work, as_json=as_json, runs=runs, still_runs=lambda: "Its workers were ended.")
