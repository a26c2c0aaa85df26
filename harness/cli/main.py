"""The console script: every command is registered by importing its file."""

from __future__ import annotations

import sys

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
from harness.cli.endings import open_streams, settle_streams
from harness.display.errors import show_error
from harness.errors import BadInput

COMMANDS = (
    init, check, prepare, admit, up, develop, run, logs, status, fetch, down, access, cost, sweep,
    prices, verify,
)  # fmt: skip


def main() -> None:
    """Run the command line. With --json a mistake in the arguments is JSON too."""
    open_streams()
    try:
        _run()
    finally:
        settle_streams()


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
