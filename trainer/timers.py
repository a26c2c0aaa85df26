"""Named moments on one monotonic clock, and the durations between them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Stopwatch:
    """What a training loop times. Seconds; the clock is injected by tests.

    `synchronise` waits for the device, so that work queued there counts where it was asked for.
    """

    synchronise: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    updates_s: list[float] = field(default_factory=list)
    moments_s: dict[str, float] = field(default_factory=dict)

    def now(self) -> float:
        """The time after all queued work is done."""
        self.synchronise()
        return self.clock()

    def mark(self, name: str) -> float:
        """Keep this moment under a name."""
        self.moments_s[name] = self.now()
        return self.moments_s[name]

    def between(self, first: str, last: str) -> float:
        """Seconds from one kept moment to another."""
        return self.moments_s[last] - self.moments_s[first]

    def update_times(self) -> dict[str, float]:
        """Sum and median of single updates."""
        return {
            "update_sum": sum(self.updates_s),
            "update_median": statistics.median(self.updates_s),
        }
