"""The console script: every command is registered by importing its file."""

from __future__ import annotations

from harness.cli import check, develop, init, prepare, run, status, verify
from harness.cli.app import app

COMMANDS = (init, check, prepare, develop, run, status, verify)


def main() -> None:
    """Run the command line."""
    app(prog_name="harness")


if __name__ == "__main__":
    main()
