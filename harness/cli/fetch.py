"""harness fetch: candidates and evidence from the store, also after the hosts are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import DEFAULT_RUNS, AsJson, RunFolder, Runs, app, finish
from harness.display.output import print_json
from harness.display.progress import Progress
from harness.errors import BadInput
from harness.fetch import What, fetch
from harness.finding import run_folder


@app.command(name="fetch")
def fetch_command(
    run: RunFolder,
    into: Annotated[
        Path | None, typer.Option("--into", help="Folder to fetch into; absent: RUN/fetched.")
    ] = None,
    arm: Annotated[str, typer.Option("--arm", help="Only this arm's candidate.")] = "",
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Only the sealed evidence, no weights.")
    ] = False,
    runs: Runs = DEFAULT_RUNS,
    as_json: AsJson = False,
) -> None:
    """Fetch candidates and evidence from the run's store; every byte is checked by its hash."""

    def work(progress: Progress) -> None:
        folder = run_folder(run, runs)
        if arm and evidence:
            raise BadInput("--arm and --evidence exclude each other", where="--arm")
        what: What = "evidence" if evidence else "candidates" if arm else "all"
        found = fetch(folder, into or folder / "fetched", what, arm=arm)
        if as_json:
            print_json([{"path": str(e.path), "bytes": e.bytes, "moved": e.moved} for e in found])
            return
        for each in found:
            typer.echo(f"{each.path}  {each.bytes} bytes{'' if each.moved else ', was here'}")

    finish(work, as_json=as_json, runs=runs)
