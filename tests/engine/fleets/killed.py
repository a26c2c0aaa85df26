"""Runs a `harness` command in this process and really kills it (SIGKILL) at the fleet's journal.

    killed.py MODE MEMORY VERB PLAN ...

MODE says where: `intent` (an intent or receipt is on disk), `effect` (the effect is done, its
outcome or receipt is not on disk), `torn` (half of an outcome's or receipt's line is on disk).
`MODE:KEY` kills only at keys that begin with KEY, and several modes are joined by commas. Every
place is killed once: MEMORY remembers which, so that calling this again and again walks through
all. `later:SECONDS` kills nowhere; the command runs that much later. MEMORY.all lists every place
that was come past, in all modes, killed there or not. The engine's process is left behind.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness.cli import app
from harness.cli import main as cli
from harness.clock import Clock
from harness.cloud import terminate
from harness.journal import Entry, Journal
from harness.launch import outer, up

MODES = tuple(each.partition(":")[::2] for each in sys.argv[1].split(","))
MEMORY = Path(sys.argv[2])
EVERY = MEMORY.with_suffix(".all")
ONE_AT_A_TIME = threading.RLock()
"""Hosts stand up side by side: a place that is remembered is one that a kill really hit."""
up.APPEAR_S = 3.0  # moto shows a host at once
terminate.POLL_S = 1.0
outer.PROOF_S = 1.0
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell had it ignored
LATER = timedelta(seconds=sum(float(only) for mode, only in MODES if mode == "later"))
vars(app)["Clock"] = lambda: Clock(now=lambda: datetime.now(UTC) + LATER)


def once(mode: str, kind: str, key: str) -> bool:
    """Whether this place is to be killed in that mode, for the first time; remembers it on disk."""
    if not any(each == mode and key.startswith(only) for each, only in MODES):
        return False
    place = named(mode, kind, key)
    return remember(MEMORY, place)


def remember(path: Path, place: str) -> bool:
    """Whether the place was not in the list; it is now, on disk."""
    if path.exists() and place in path.read_text().split("\n"):
        return False
    with path.open("a") as handle:
        handle.write(place + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    return True


def named(mode: str, kind: str, key: str) -> str:
    """The same place of every try has one name."""
    return f"{mode} {kind} {key.rstrip('0123456789')}"


def die() -> None:
    """SIGKILL: nothing of this process runs after it."""
    os.kill(os.getpid(), signal.SIGKILL)


append, write = Journal.append, Journal.write
BEGINS, ENDS = ("intent", "receipt"), ("outcome", "receipt")


def append_killed(self: Journal, kind: Any, key: str, data: dict[str, Any]) -> Entry:
    if self.path.parent.parent.name != "fleets" or key == "admitted":
        return append(self, kind, key, data)
    with ONE_AT_A_TIME:
        for mode, kinds in (("intent", BEGINS), ("effect", ENDS), ("torn", ENDS)):
            if kind in kinds:
                remember(EVERY, named(mode, kind, key))
        if kind in ENDS and once("effect", kind, key):
            die()
        if kind in ENDS and once("torn", kind, key):
            Journal.write = write_half  # type: ignore[method-assign]
        entry = append(self, kind, key, data)
        if kind in BEGINS and once("intent", kind, key):
            die()
        return entry


def write_half(self: Journal, line: bytes) -> None:
    write(self, line[: len(line) // 2])
    die()


Journal.append = append_killed  # type: ignore[method-assign]
sys.argv = ["harness", *sys.argv[3:]]
cli.main()
