"""Numbers as text, the same on the page and in the terminal. ASCII only, no locale."""

from __future__ import annotations

import math
from decimal import ROUND_UP, Decimal

from harness.plan.decisions import Statistic
from harness.statistics.normal import coverage

NOT_RUN = "not run"
"""What stands for every figure of a stage that did not run: never zero."""

_SHARES = ("accuracy", "valid-json-share", "serving-token-agreement")


def count(value: int) -> str:
    """1,711,376,384"""
    return f"{value:,}"


def percent(share: float) -> str:
    """0.7305 as 73.05 %"""
    return f"{100 * share:.2f} %"


def points(difference: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{_signed(100 * difference, 2)} points"


def nats(difference: float) -> str:
    """A difference of losses, with its sign."""
    return f"{_signed(difference, 6)} nats"


def loss(value: float) -> str:
    """A loss in nats, without a unit."""
    return f"{value:.6f}"


def seconds(value: float) -> str:
    """1,304.90 s; three decimals below ten seconds."""
    return f"{value:,.2f} s" if abs(value) >= 10 else f"{value:.3f} s"


def rate(value: float) -> str:
    """Three significant digits, or a whole number above 100."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def about(value: float) -> str:
    """A duration that is only an estimate: 'about 2 min', 'about 40 s', 'about 3.5 h'."""
    if not math.isfinite(value) or value < 0:
        return "time unknown"
    if value < 90:
        return f"about {max(1, math.ceil(value))} s"
    if value < 5400:
        return f"about {value / 60:.0f} min"
    return f"about {value / 3600:.1f} h"


def decimal_bytes(value: int) -> str:
    """Traffic and files: powers of ten. 151.628 GB"""
    return _scaled(value, 1000, ("kB", "MB", "GB", "TB", "PB"))


def binary_bytes(value: int) -> str:
    """Memory: powers of two. 39.570 GiB"""
    return _scaled(value, 1024, ("KiB", "MiB", "GiB", "TiB", "PiB"))


def money(amount: str) -> str:
    """The exact decimal string in dollars."""
    return f"${amount}"


def places_up(number: str, places: int) -> str:
    """A decimal text rounded away from zero to so many places."""
    step = Decimal(1).scaleb(-places)
    return f"{Decimal(number).quantize(step, rounding=ROUND_UP):f}"


def money_up(amount: str) -> str:
    """Rounded up to the cent, for a bound."""
    return f"${Decimal(amount).quantize(Decimal('0.01'), rounding=ROUND_UP)}"


def statistic_value(statistic: Statistic | str, value: float) -> str:
    """A decision's value, bound or margin in the unit of its statistic."""
    if statistic in _SHARES:
        return percent(value)
    if statistic == "accuracy-difference":
        return points(value)
    if statistic == "retention-difference":
        return nats(value)
    if statistic.endswith("-ratio"):
        return f"{value:.3f}x"
    return f"{value:.3g}"


def utc(text: str) -> str:
    """2026-11-29T20:15:01.123456Z to the second, with a space."""
    day, at, time = text.partition("T")
    return f"{day} {time.partition('.')[0].rstrip('Z')} UTC" if at else text


def one_sided(z: float) -> str:
    """2.576 as '99.5 % one-sided'."""
    return coverage(z).label.partition(",")[0]


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text.replace("-", "+") if float(text) == 0 else text


def _scaled(value: int, base: int, units: tuple[str, ...]) -> str:
    if value < base:
        return f"{value} B"
    power = 1
    while value >= base ** (power + 1) and power < len(units):
        power += 1
    return f"{value / base**power:,.{3 if base == 1000 else 2}f} {units[power - 1]}"
