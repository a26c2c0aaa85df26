"""harness init: a plan to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import app, finish
from harness.display.progress import Progress
from harness.errors import command
from harness.init import make_plan


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="Name of the new study (lower-case-words).")],
    base: Annotated[
        str, typer.Option("--from", help="A shipped plan's name, or a plan file to start from.")
    ] = "quickstart",
    folder: Annotated[Path, typer.Option("--folder", help="Where plans are kept.")] = Path("plans"),
) -> None:
    """Write plans/NAME/plan.json and say what to do next."""

    def work(progress: Progress) -> None:
        path = make_plan(name, folder, base=base)
        typer.echo(f"Wrote {path}. Edit it, then: {command('check', path)}")

    finish(work)
