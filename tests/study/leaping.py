"""Runs `harness` in this process with a clock that leaps past the deadline when a file appears.

    leaping.py PATTERN ARGUMENT...

PATTERN is a glob below the folder `runs`. Nothing but this side's clock is changed.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.cli import main
from harness.cli import run as run_command
from harness.clock import Clock

PATTERN = sys.argv.pop(1)
LEAP = timedelta(hours=1)


def now() -> datetime:
    leaps = any(Path("runs").glob(PATTERN))
    return datetime.now(UTC) + (LEAP if leaps else timedelta())


vars(run_command)["clock"] = lambda: Clock(now=now)
main.main()
