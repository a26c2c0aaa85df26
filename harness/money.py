"""Exact money: decimal strings in and out, quantities from integers, never a float (invariant 10).

Adding and multiplying are exact or fail. Only a division can have no end in decimals (seconds to
hours, byte-seconds to gigabyte-months); it is rounded up at `PLACES`, so that a bound stays one.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterable
from decimal import Decimal

PLACES = 12
"""Decimal places to which a quantity is rounded up; with a price of 6 places, 18 in an amount."""

MINIMUM_BILLED_S = 60
"""EC2 bills Linux by the second and at least this long (aws.amazon.com/ec2/pricing/on-demand)."""

HOURS_A_MONTH = 720
"""A 30-day month. The other usual divisor, 730, makes the same hours cheaper: the bound takes this
one, which is also that of AWS's own worked examples (aws.amazon.com/ebs/pricing)."""

BYTES_A_GB = 10**9
"""AWS's bills count larger gigabytes (2^30) in places; 10^9 gives more of them, never fewer."""

_FORM = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,18})?")
_EXACT = decimal.Context(
    prec=80,
    Emin=-999,
    Emax=999,
    traps=[
        decimal.Inexact,
        decimal.InvalidOperation,
        decimal.DivisionByZero,
        decimal.Overflow,
        decimal.FloatOperation,
    ],
)
_UP = decimal.Context(prec=80, rounding=decimal.ROUND_CEILING)
_STEP = Decimal(1).scaleb(-PLACES)


def amount(text: str) -> Decimal:
    """US dollars from their text. Raises ValueError for a float, an exponent, a sign or NaN."""
    if not isinstance(text, str) or not _FORM.fullmatch(text):
        raise ValueError("an amount of money is a plain decimal in a string, such as '12.50'")
    return Decimal(text)


def text(value: Decimal) -> str:
    """Plain decimal text of an amount or quantity: no exponent, no trailing zeros.

    Raises ValueError when it has no such form (negative, or more than 18 decimal places).
    """
    if not value.is_finite():
        raise ValueError("an amount of money is finite")
    shown = f"{value:f}"
    if "." in shown:
        shown = shown.rstrip("0").rstrip(".")
    if not _FORM.fullmatch(shown):
        raise ValueError(f"{shown[:60]} has no form as an amount of money")
    return shown


def add(values: Iterable[Decimal]) -> Decimal:
    """The exact sum. Raises decimal.Inexact rather than round."""
    total = Decimal(0)
    for value in values:
        total = _EXACT.add(total, value)
    return total


def multiply(quantity: Decimal | int, price: Decimal) -> Decimal:
    """The exact product. Raises decimal.Inexact rather than round."""
    return _EXACT.multiply(quantity, price)


def total(amounts: Iterable[str]) -> str:
    """The exact sum of amounts of money, as text."""
    return text(add(amount(each) for each in amounts))


def share_up(numerator: Decimal | int, denominator: int) -> Decimal:
    """A quotient rounded up at `PLACES`; exact where it ends before that."""
    top = _EXACT.create_decimal(numerator)
    return _UP.divide(top, Decimal(denominator)).quantize(
        _STEP, rounding=decimal.ROUND_CEILING, context=_UP
    )


def hours(seconds: Decimal | int) -> Decimal:
    """Seconds as hours, rounded up."""
    return share_up(seconds, 3600)


def billed_hours(seconds: Decimal | int) -> Decimal:
    """What EC2 bills for a host that lived so long: per second, 60 s at least, as hours."""
    return hours(max(_EXACT.create_decimal(seconds), Decimal(MINIMUM_BILLED_S)))


def unit_months(units: Decimal | int, seconds: Decimal | int) -> Decimal:
    """Units held for so many seconds as unit-months of 720 hours, rounded up."""
    held = _EXACT.multiply(_EXACT.create_decimal(units), _EXACT.create_decimal(seconds))
    return share_up(held, 3600 * HOURS_A_MONTH)


def gigabytes(count: int) -> Decimal:
    """Bytes as gigabytes of 10^9, exactly."""
    return Decimal(count).scaleb(-9, context=_EXACT)


def price_of_bytes(count: int, usd_per_gb: str) -> str:
    """What so many bytes cost at a price a gigabyte, exactly, as text."""
    return text(multiply(gigabytes(count), amount(usd_per_gb)))


def bytes_up(gb: float) -> int:
    """Gigabytes (10^9 bytes) as a plan file writes them, in whole bytes, rounded up.

    The number is taken by its shortest decimal text, which is what the file holds.
    """
    return int(Decimal(repr(gb)).scaleb(9).to_integral_value(decimal.ROUND_CEILING))
