"""Runs `harness` in this process with a clock that leaps past the deadline when a file appears.

    leaping.py PATTERN ARGUMENT...

PATTERN is a glob below the folder `runs`; with LEAP_LINES in the environment the file must have
that many lines. Nothing but this side's clock is changed.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.cli import main
from harness.cli import run as run_command
from harness.clock import Clock

PATTERN = sys.argv.pop(1)
LEAP = timedelta(hours=1)
LINES = int(os.environ.get("LEAP_LINES", "0"))


def now() -> datetime:
    found = Path("runs").glob(PATTERN)
    leaps = any(not LINES or path.read_bytes().count(b"\n") >= LINES for path in found)
    return datetime.now(UTC) + (LEAP if leaps else timedelta())


vars(run_command)["clock"] = lambda: Clock(now=now)
main.main()
