"""`harness`: the commands, and how every one of them ends."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from harness import __version__
from harness.cli.endings import Stopped, as_harness_error, drop, stops_as_errors
from harness.clock import Clock
from harness.display.errors import show_error
from harness.display.output import print_json
from harness.display.progress import Progress, make_progress
from harness.display.unfailing import Unfailing
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
RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run's folder, or a plan's name: its newest run.")
]
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
    work: Callable[[Progress], None],
    *,
    as_json: bool = False,
    runs: Path | None = None,
    still_runs: Callable[[], str] = str,
) -> None:
    """Do a command's work; every ending is one sentence and an exit code.

    `runs` is named when the system refuses something without naming a file; `still_runs` says
    what goes on without this process when a signal stopped it.
    """
    progress = Unfailing(make_progress(sys.stderr, as_json=as_json))
    with stops_as_errors():
        try:
            work(progress)
            sys.stdout.flush()
        except Stopped as stopped:
            progress.close()
            _say_stopped(stopped, still_runs, as_json)
            raise typer.Exit(stopped.exit_code) from None
        except BrokenPipeError:
            drop(1)
            raise typer.Exit(1) from None
        except typer.Exit:
            raise
        except Exception as error:
            progress.close()
            said = as_harness_error(error, str(runs or ""))
            said.next_command = with_runs(said.next_command, runs)
            show_error(said, as_json=as_json)
            raise typer.Exit(said.exit_code) from None
        finally:
            progress.close()


_WITH_RUNS = ("run", "prepare", "status", "admit", "up", "down", "access", "fetch", "keep")


def with_runs(command: str, runs: Path | None) -> str:
    """The command with --runs, where another folder than runs/ was given."""
    needs = command.startswith(tuple(f"harness {each}" for each in _WITH_RUNS))
    if runs is None or runs == DEFAULT_RUNS or not needs:
        return command
    return f"{command} --runs {shlex.quote(str(runs))}"


def _say_stopped(stopped: Stopped, still_runs: Callable[[], str], as_json: bool) -> None:
    try:
        going = still_runs()
    except (HarnessError, OSError, ValueError):
        going = "What still runs could not be read: harness status"
    text = f"{stopped.words} {going}".rstrip()
    if as_json:
        print_json({"error": "stopped", "what": text, "exit_code": stopped.exit_code})
    else:
        with suppress(OSError):
            typer.echo(text, err=True)


def clock() -> Clock:
    """The real clock."""
    return Clock()
