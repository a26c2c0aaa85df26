"""The console script: every command is registered by importing its file."""

from __future__ import annotations

import sys

from typer.models import CommandInfo

from harness.cli import (
    access,
    admit,
    check,
    cost,
    develop,
    down,
    fetch,
    init,
    logs,
    prepare,
    prices,
    run,
    status,
    sweep,
    up,
    verify,
)
from harness.cli.app import app
from harness.cli.endings import as_harness_error, open_streams, settle_streams
from harness.display.errors import show_error
from harness.errors import BadInput

COMMANDS = (
    access, admit, check, cost, develop, down, fetch, init, logs, prepare, prices, run, status,
    sweep, up, verify,
)  # fmt: skip
"""Importing them has registered them."""

HELP = {
    "A study": ("init", "check", "develop", "prepare", "run", "status", "logs", "ssh"),
    "What it leaves": ("fetch", "keep", "verify", "publish", "cost"),
    "On AWS": ("admit", "up", "down", "access", "sweep", "prices"),
}
"""Commands in the order in which a study needs them."""


def main() -> None:
    """Run the command line. With --json a mistake in the arguments is JSON too."""
    open_streams()
    _in_order()
    try:
        _run()
    except OSError as error:  # help or a mistake's words that nobody can be told
        sys.exit(_unsaid(error))
    finally:
        settle_streams()


def _in_order() -> None:
    """Help lists the commands as `HELP` does; one that it does not know comes last."""
    for panel, names in HELP.items():
        for info in app.registered_commands:
            if _name(info) in names:
                info.rich_help_panel = panel
    order = [name for names in HELP.values() for name in names]
    place = {name: i for i, name in enumerate(order)}
    app.registered_commands.sort(key=lambda info: place.get(_name(info), len(order)))


def _name(info: CommandInfo) -> str:
    return str(info.name or getattr(info.callback, "__name__", ""))


def _unsaid(error: OSError) -> int:
    """Say what can be said; the exit code is that of a stream that cannot be written."""
    said = as_harness_error(error, "standard output")
    show_error(said)
    return said.exit_code


def _run() -> None:
    if "--json" not in sys.argv:
        app(prog_name="harness")
    try:
        sys.exit(app(prog_name="harness", standalone_mode=False))
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        said = BadInput(message() or "a command is missing", next_command="harness --help")
        show_error(said, as_json=True)
        sys.exit(said.exit_code)


if __name__ == "__main__":
    main()
