"""harness verify, keep and publish: evidence that is recomputed from its archive, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import DEFAULT_RUNS, AsJson, RunFolder, Runs, app, finish
from harness.closing import ClosingRecord
from harness.display.output import print_json
from harness.display.progress import Progress
from harness.display.sanitize import clean
from harness.errors import command
from harness.finding import run_folder
from harness.keep import keep as keep_run
from harness.publish import NO_WEIGHTS, Weights, run_of
from harness.publish import publish as publish_evidence
from harness.strict import load_file
from harness.verify import Trust
from harness.verify import verify as verify_evidence


def branch_in(evidence: Path) -> str:
    """The branch that carries the commitments of kept evidence."""
    return f"harness/{load_file(ClosingRecord, evidence / 'closing.json').run}"


@app.command()
def keep(
    run: RunFolder,
    into: Annotated[Path, typer.Option("--into", help="Folder for evidence.")] = Path("evidence"),
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Write evidence/NAME from a finished run. Committing it is yours."""

    def work(progress: Progress) -> None:
        folder = keep_run(run_folder(run, runs), into)
        typer.echo(f"Wrote {folder}. Check it with: {command('verify', folder)}")
        typer.echo(
            f"So that clones have the commitments too: git merge {branch_in(folder)}, then commit "
            f"{folder}"
        )

    finish(work, runs=runs)


@app.command()
def verify(
    path: Annotated[
        Path, typer.Argument(help="A run's folder, evidence/NAME, or an archive (.tar.gz) alone.")
    ],
    signer: Annotated[
        Path | None,
        typer.Option("--signer", help="Public keys, one of which must have signed (.pub file)."),
    ] = None,
    timestamp_ca: Annotated[
        Path | None,
        typer.Option("--timestamp-ca", help="Certificates (PEM) that time stamps must lead to."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check evidence offline: digests, commitments, scores, statistics, and the report rebuilt."""

    def work(progress: Progress) -> None:
        found = verify_evidence(path, _trust(signer, timestamp_ca))
        if as_json:
            print_json(found.to_json())
        else:
            for line in found.lines:
                typer.echo(clean(line))
            typer.echo("Not proved by evidence of this kind:")
            for phrase in found.cannot:
                typer.echo(f"  {phrase}")

    finish(work, as_json=as_json)


def _trust(signer: Path | None, certificates: Path | None) -> Trust:
    """What the reader brings. Raises BadInput."""
    if signer is None and certificates is None:
        return Trust()
    from harness.attest.signing import load_public_keys
    from harness.attest.stamping import load_certificates

    return Trust(
        signers=load_public_keys(signer) if signer else (),
        certificates=load_certificates(certificates) if certificates else b"",
    )


@app.command()
def publish(
    evidence: Annotated[Path, typer.Argument(help="evidence/NAME, or a finished run's folder.")],
    into: Annotated[Path, typer.Option("--into", help="The folder to write.")],
    weights: Annotated[
        list[str] | None,
        typer.Option("--weights", help="Also this arm's weights ('all': of every arm)."),
    ] = None,
    licence: Annotated[
        list[Path] | None,
        typer.Option("--licence", help="A licence text that goes with it."),
    ] = None,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Write a folder for any static host: page, data, archive, cards, how to check it."""

    def work(progress: Progress) -> None:
        asked = Weights(tuple(weights), run_of(evidence, runs)) if weights else NO_WEIGHTS
        folder = publish_evidence(evidence, into, weights=asked, licences=licence or ())
        typer.echo(f"Wrote {folder}. Check it with: python3 {folder}/verify.py {folder}")

    finish(work)
