"""heartbeat-R.json: the last progress, for a supervisor that looks from outside.

There is no thread behind it: a rank that stalls stops beating.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from trainer.contract import canonical


def utc_now() -> str:
    """The time as the contract writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass
class Heartbeat:
    """Writes the file whole (temporary name, then rename). It need not survive a power cut."""

    path: Path
    interval_s: float = 5.0
    """Least time between two ticks that reach the file."""
    clock: Callable[[], float] = time.monotonic
    _last_s: float = field(default=float("-inf"), init=False)
    _state: dict[str, object] = field(default_factory=dict, init=False)

    def beat(
        self,
        phase: str,
        done: int = 0,
        of: int = 0,
        loss: float | None = None,
        tokens_per_s: float | None = None,
    ) -> None:
        """Report progress now."""
        self._state = {
            "phase": phase,
            "done": done,
            "of": of,
            "loss": loss,
            "tokens_per_s": tokens_per_s,
        }
        self._write()

    def tick(self) -> None:
        """Still alive inside the same step: refreshes the time, at most every `interval_s`."""
        if self.clock() - self._last_s >= self.interval_s:
            self._write()

    def _write(self) -> None:
        self._last_s = self.clock()
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        temporary.write_bytes(canonical({**self._state, "time": utc_now()}) + b"\n")
        os.replace(temporary, self.path)
