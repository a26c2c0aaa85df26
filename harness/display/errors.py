"""How an error is shown: one sentence, then the next command."""

from __future__ import annotations

import sys
from contextlib import suppress

from harness.display.console import make_console
from harness.display.output import print_json
from harness.display.sanitize import clean
from harness.errors import HarnessError


def show_error(error: HarnessError, *, as_json: bool = False) -> None:
    """Print it on standard error; with `as_json` one JSON object on standard output.

    Lines are not broken, so that a path can be found in them and a command pasted.
    """
    if as_json:
        print_json(
            {
                "error": error.kind,
                "what": error.what,
                "where": error.where,
                "next": error.next_command,
                "exit_code": error.exit_code,
            }
        )
        return
    console = make_console(sys.stderr)
    with suppress(OSError):  # nobody may be there to read it; the exit code stands
        console.print(clean(f"{error.kind}: {error.sentence()}"), soft_wrap=True)
        if error.next_command:
            console.print(clean(f"next: {error.next_command}"), soft_wrap=True)
