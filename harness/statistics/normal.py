"""The declared z: its check and its label.

A z alone is ambiguous: 2.576 leaves 0.5 % above it and 1 % outside both signs of it. Whoever
prints a bound prints its coverage beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

# Far past any meaning (z = 38 leaves no double above it); bounds the squares of z.
MAX_Z = 1000


def check_z(z: float) -> float:
    """Return z, a number of standard errors, as a float.

    Errors: ValueError if it is not a number above 0 and at most 1000.
    """
    if isinstance(z, bool) or not isinstance(z, int | float):
        raise ValueError(f"z must be a number, got {type(z).__name__}")
    if not 0 < z <= MAX_Z:
        raise ValueError(f"z must be finite and positive, at most {MAX_Z}")
    return float(z)


def upper_tail(z: float) -> float:
    """Return the standard normal probability above z (NIST DLMF 7.17.2: erfc(z/sqrt 2)/2).

    Below 5e-324 it is 0.0; it has no errors of its own.
    """
    return math.erfc(z / math.sqrt(2)) / 2


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a declared z means under the normal approximation. Unit: probability, 0 to 1."""

    z: float
    one_sided: float
    """Coverage of a single bound at z."""
    two_sided: float
    """Coverage of the interval between both bounds."""
    label: str
    """Both in words, for the report, as in '99.5 % one-sided, 99 % two-sided'."""


def coverage(z: float) -> Coverage:
    """Return what z standard errors cover, one-sided and two-sided.

    Errors: ValueError if z is not finite and positive.
    Source: standard normal distribution function, NIST DLMF 7.17.2.
    """
    z = check_z(z)
    tail = upper_tail(z)
    label = f"{_percent(1 - tail)} one-sided, {_percent(1 - 2 * tail)} two-sided"
    return Coverage(z, 1 - tail, 1 - 2 * tail, label)


def z_two_sided(confidence: float) -> float:
    """Return the z whose two-sided coverage is `confidence` (0.95 gives 1.959964), in standard
    errors.

    Errors: ValueError if confidence is not strictly between 0 and 1.
    Source: standard normal quantile, Wichura 1988, algorithm AS 241.
    """
    if not 0 < confidence < 1:
        raise ValueError("confidence must lie strictly between 0 and 1")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _percent(probability: float) -> str:
    # Never round up to a certainty that no sample gives.
    for digits in range(4, 16):
        text = f"{100 * probability:.{digits}g}"
        if text != "100":
            return f"{text} %"
    return "over 99.999999 %"
