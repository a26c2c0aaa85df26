"""`harness`: the commands, and how every one of them ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from harness import __version__
from harness.clock import Clock
from harness.display.errors import show_error
from harness.display.progress import Progress, make_progress
from harness.errors import HarnessError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Preregistered GPU experiments that cannot outlive their deadline, lose their evidence "
    "or hide their cost.",
    epilog="Exit codes: 0 done, 2 bad input, 3 refused, 4 stopped and resumable, 5 lost or leaked.",
)

PlanFile = Annotated[Path, typer.Argument(help="plan.json, or the folder that holds it.")]
Runs = Annotated[Path, typer.Option("--runs", help="Folder for runs and the local store.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
DEFAULT_RUNS = Path("runs")


def version(shown: bool) -> None:
    """Print the version and stop."""
    if shown:
        typer.echo(f"harness {__version__}")
        raise typer.Exit


@app.callback()
def top(
    show: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Only `--version` is an option of the program itself."""


def finish(
    work: Callable[[Progress], None], *, as_json: bool = False, still_runs: Callable[[], str] = str
) -> None:
    """Do a command's work; every ending is one sentence and an exit code.

    `still_runs` says after Ctrl-C what goes on without this process.
    """
    progress = make_progress(sys.stderr, as_json=as_json)
    try:
        work(progress)
    except HarnessError as error:
        progress.close()
        show_error(error, as_json=as_json)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        progress.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        typer.echo(f"Stopped by you. {still_runs()}".rstrip(), err=True)
        raise typer.Exit(130) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(1) from None
    finally:
        progress.close()


def clock() -> Clock:
    """The real clock."""
    return Clock()
