"""UTC time and monotonic durations; injected, so that tests can hold them still."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


def utc_text(moment: datetime) -> str:
    """`2026-11-29T20:15:01.123456Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_utc(text: str) -> datetime:
    """The moment that `utc_text` wrote. Raises ValueError."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def seconds_between(first: str, last: str) -> float:
    """Seconds from one moment to another, both as `utc_text` writes them. Raises ValueError."""
    return (parse_utc(last) - parse_utc(first)).total_seconds()


def whole_second(moment: datetime) -> datetime:
    """The first whole second that is not before it."""
    return moment + timedelta(microseconds=-moment.microsecond % 1_000_000)


@dataclass(frozen=True)
class Clock:
    """Wall clock and monotonic clock."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def utc(self) -> str:
        """The time now, as text."""
        return utc_text(self.now())

    def after(self, seconds: float) -> str:
        """The time that many seconds from now, as text."""
        return utc_text(self.now() + timedelta(seconds=seconds))
