"""Intervals for a difference of paired accuracies that behave at the edges.

They stand beside the declared bound and do not decide. The estimate is (gained - lost) / n; both
intervals stay within -1 and 1, exist from one case on, and keep their width where no case is
discordant, where mean -/+ z * s / sqrt(n) shrinks to a point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from harness.statistics.counts import PairedCounts
from harness.statistics.normal import check_z


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval of candidate minus reference accuracy. Unit: share of cases."""

    method: Literal["newcombe-10", "tango"]
    n: int
    z: float
    estimate: float
    lower: float
    upper: float


def newcombe(counts: PairedCounts, *, z: float) -> Interval:
    """Return Newcombe's method 10: Wilson limits of both accuracies, squared and added.

    Unit: share of cases; z in standard errors, two-sided (1.959964 for 95 %).
    Errors: ValueError if z is not finite and positive.
    Source: Newcombe, Statistics in Medicine 17 (1998) 2635-2650, method 10 (score intervals without
    continuity correction, correlation phi corrected for continuity).
    """
    z = check_z(z)
    n = counts.n
    candidate, reference = counts.both + counts.gained, counts.both + counts.lost
    phi = _corrected_phi(counts)
    below_candidate, above_candidate = _wilson_distances(candidate, n, z)
    below_reference, above_reference = _wilson_distances(reference, n, z)
    estimate = (counts.gained - counts.lost) / n
    return Interval(
        method="newcombe-10",
        n=n,
        z=z,
        estimate=estimate,
        lower=max(-1.0, estimate - _combine(below_candidate, above_reference, phi)),
        upper=min(1.0, estimate + _combine(above_candidate, below_reference, phi)),
    )


def tango(counts: PairedCounts, *, z: float) -> Interval:
    """Return Tango's score interval: every difference that the score test does not reject at z.

    Unit: share of cases; z in standard errors, two-sided (1.959964 for 95 %).
    Errors: ValueError if z is not finite and positive.
    Source: Tango, Statistics in Medicine 17 (1998) 891-908: the test statistic and the constrained
    estimate of the discordant probability, solved here for the difference by bisection.
    """
    z = check_z(z)
    gained, lost, n = counts.gained, counts.lost, counts.n
    return Interval(
        method="tango",
        n=n,
        z=z,
        estimate=(gained - lost) / n,
        # Swapping the roles turns the interval over, so one solver gives both limits.
        lower=0.0 - _tango_upper(lost, gained, n, z),
        upper=_tango_upper(gained, lost, n, z),
    )


def _corrected_phi(counts: PairedCounts) -> float:
    a, b, c, d = counts.both, counts.gained, counts.lost, counts.neither
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0  # phi is 0/0 when one of the two is all right or all wrong
    doubled = 2 * (a * d - b * c)
    if doubled > 0:
        doubled = max(doubled - counts.n, 0)
    return doubled / (2 * math.sqrt(margins))


def _wilson_distances(correct: int, n: int, z: float) -> tuple[float, float]:
    """Distances from correct/n down to and up to its Wilson limits, neither negative."""
    share = correct / n
    centre = (2 * correct + z * z) / (2 * (n + z * z))
    half = z * math.sqrt(z * z + 4 * correct * (n - correct) / n) / (2 * (n + z * z))
    return max(0.0, share - (centre - half)), max(0.0, (centre + half) - share)


def _combine(first: float, second: float, phi: float) -> float:
    square = (first * first + second * second) - 2 * phi * (first * second)
    return math.sqrt(max(0.0, square))


def _tango_upper(gained: int, lost: int, n: int, z: float) -> float:
    """Largest difference that the score test does not reject at z."""
    inside, outside = (gained - lost) / n, 1.0
    while True:
        middle = (inside + outside) / 2
        if not inside < middle < outside:
            return outside  # neighbouring doubles: the outer one keeps the coverage
        if _tango_rejects(middle, gained, lost, n, z):
            outside = middle
        else:
            inside = middle


def _tango_rejects(difference: float, gained: int, lost: int, n: int, z: float) -> bool:
    """Whether (gained - lost - n * difference)^2 exceeds z^2 times its variance under the null."""
    if difference < 0:
        # The null is the same with the roles swapped. Only there c <= 0, so that nothing cancels
        # under the root: near a double root the limit would lose half its digits.
        difference, gained, lost = -difference, lost, gained
    a = 2 * n
    b = (2 * n - gained + lost) * difference - gained - lost
    c = -lost * difference * (1 - difference)
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    # Both forms of the larger root; each adds terms of one sign.
    q = -2 * c / (root + b) if b > 0 else (root - b) / (2 * a)
    variance = n * (2 * q + difference * (1 - difference))
    return (gained - lost - n * difference) ** 2 > z * z * variance
