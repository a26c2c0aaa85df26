"""When this process began, and what its interface had counted by then.

It travels from `launch` to the worker through one environment variable, so that start-up is part
of what a receipt reports.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass

from trainer.traffic import Counters


@dataclass(frozen=True)
class Beginning:
    """The start of a process, as `launch` saw it."""

    started_s: float
    """On the monotonic clock, which all processes of a machine share."""
    traffic: Counters

    @classmethod
    def observe(cls, interface: str) -> Beginning:
        """This process's own beginning, and the counters of now."""
        return cls(process_start(), Counters.read(interface))

    def elapsed(self) -> float:
        """Seconds since the process began."""
        return time.monotonic() - self.started_s

    def to_text(self) -> str:
        """For an environment variable."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str | None) -> Beginning | None:
        """What `to_text` wrote; None for nothing."""
        if not text:
            return None
        value = json.loads(text)
        return cls(value["started_s"], Counters(**value["traffic"]))


def process_start() -> float:
    """When this process was made, in seconds of the monotonic clock, to 10 ms.

    Linux counts it in ticks since boot (proc(5), field 22); elsewhere it is 'now'.
    """
    now = time.monotonic()
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as handle:
            after_name = handle.read().rpartition(")")[2].split()
        ticks = int(after_name[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - max(age, 0.0)
