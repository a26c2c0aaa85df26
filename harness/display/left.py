"""Time until the deadline and money until the ceiling. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from harness import money
from harness.clock import parse_utc
from harness.display import words

CENT = Decimal("0.01")
HOUR = Decimal(3600)


@dataclass(frozen=True, slots=True)
class Left:
    """What a fleet has left at a moment."""

    seconds: float
    """Until the deadline; 0 when it has passed."""
    usd: str
    """Under the ceiling, at least, to the cent."""
    ceiling_usd: str


@dataclass(frozen=True, slots=True)
class Meter:
    """What a fleet was admitted with."""

    deadline_utc: str
    ceiling_usd: str
    worst_case_usd: str
    hourly_usd: str
    """All hosts together; the part of the worst case that time brings."""

    def left(self, now: datetime) -> Left:
        """All but the hours to come counts as spent: disks, traffic caps and storage in full."""
        seconds = max(0.0, (parse_utc(self.deadline_utc) - now).total_seconds())
        to_come = money.amount(self.hourly_usd) * Decimal(int(seconds)) / HOUR
        spent = max(Decimal(0), money.amount(self.worst_case_usd) - to_come)
        left = max(Decimal(0), money.amount(self.ceiling_usd) - spent)
        return Left(seconds, str(left.quantize(CENT, rounding="ROUND_DOWN")), self.ceiling_usd)


def left_line(left: Left) -> str:
    """deadline in about 83 min, at least $6.90 of the ceiling $10 left"""
    when = f"deadline in {words.about(left.seconds)}" if left.seconds else "the deadline has passed"
    return f"{when}, at least ${left.usd} of the ceiling {words.money(left.ceiling_usd)} left"
