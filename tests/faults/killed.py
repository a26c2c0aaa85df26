"""Runs `harness run` in this process and really kills it (SIGKILL) at chosen journal entries.

    killed.py MODE MEMORY PLAN RUNS [HOSTS]

MODE says where: `intent` (the intent is on disk), `effect` (the effect is done, its outcome is
not), `torn` (half of the outcome's or receipt's line is on disk), `stage` (between two stages).
HOSTS is a hosts.json; without it workers are local. Every key is killed once; MEMORY
is a file that remembers which, so that calling this again and again walks through the whole study.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.cli import main as cli
from harness.journal import Entry, Journal

MODE, MEMORY = sys.argv[1], Path(sys.argv[2])
ONE_AT_A_TIME = threading.RLock()
"""Effects run side by side: a point that is remembered is one that a kill really hit."""


def once(key: str) -> bool:
    """Whether this key has not been killed yet; remembers it on disk."""
    seen = set(MEMORY.read_text().split("\n")) if MEMORY.exists() else set()
    if key in seen:
        return False
    with MEMORY.open("a") as handle:
        handle.write(key + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    return True


def die() -> None:
    """SIGKILL: nothing of this process runs after it."""
    os.kill(os.getpid(), signal.SIGKILL)


append, effect, write = Journal.append, Journal.effect, Journal.write


def append_killed(self: Journal, kind: Any, key: str, data: dict[str, Any]) -> Entry:
    with ONE_AT_A_TIME:
        if MODE == "torn" and kind in ("outcome", "receipt") and once(f"{kind} {key}"):
            Journal.write = write_half  # type: ignore[method-assign]
        entry = append(self, kind, key, data)
        wanted = {"intent": ("intent", "receipt"), "stage": ("receipt",)}.get(MODE, ())
        if kind in wanted and once(f"{kind} {key}"):
            die()
        return entry


def write_half(self: Journal, line: bytes) -> None:
    write(self, line[: len(line) // 2])
    die()


def effect_killed(self: Journal, key: str, outcome: Any, **more: Any) -> Any:
    """The effect is there, done now or found, and its outcome is not on disk."""

    def then_die(look: Callable[[], Any]) -> Callable[[], Any]:
        def wrapped() -> Any:
            result = look()
            with ONE_AT_A_TIME:
                if result is not None and MODE == "effect" and once(f"effect {key}"):
                    die()
            return result

        return wrapped

    more["act"], more["adopt"] = then_die(more["act"]), then_die(more["adopt"])
    return effect(self, key, outcome, **more)


Journal.append = append_killed  # type: ignore[method-assign]
Journal.effect = effect_killed  # type: ignore[method-assign]
WHERE = ["--hosts", sys.argv[5]] if len(sys.argv) > 5 else ["--local"]
sys.argv = ["harness", "run", sys.argv[3], *WHERE, "--runs", sys.argv[4]]
cli.main()
