"""Mean of per-case differences with a normal bound: the statistic that a plan declares.

    d_i   = candidate_i - reference_i
    mean  = sum(d_i) / n
    s^2   = sum((d_i - mean)^2) / (n - 1)
    bound = mean -/+ z * s / sqrt(n)

Source: the paired large-sample interval, Snedecor and Cochran, Statistical Methods (1989),
section 6.3, with the declared z in place of Student's quantile. Sums are exact rationals, rounded
once: counts and raw sequences give the same digits, in any order and on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real

from harness.statistics.counts import PairedCounts, check_same_length, count_pairs
from harness.statistics.normal import check_z


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean per-case difference, candidate minus reference, in the unit of the cases.

    For accuracies the unit is a share of cases: -0.01 is one percentage point lost. For losses it
    is the unit of the loss (nats), and positive is worse.
    """

    n: int
    mean: float
    standard_deviation: float
    """Of the per-case differences, divisor n - 1."""
    standard_error: float
    z: float
    lower: float
    upper: float


def paired_accuracy(
    candidate: Sequence[bool | int], reference: Sequence[bool | int], *, z: float
) -> PairedDifference:
    """Compare aligned per-case correctness (0 or 1). Unit: share of cases.

    Errors: ValueError if the sequences are empty, differ in length, hold anything but 0 and 1, or
    hold one case only (s needs two), or if z is not finite and positive.
    Source: see the module.
    """
    return paired_accuracy_from_counts(count_pairs(candidate, reference), z=z)


def paired_accuracy_from_counts(counts: PairedCounts, *, z: float) -> PairedDifference:
    """Compare two accuracies by their four counts. Unit: share of cases.

    Each difference is 1 (gained), -1 (lost) or 0, so the sums need no cases.
    Errors: ValueError if there is one case only, or if z is not finite and positive.
    Source: see the module.
    """
    total, squares = counts.gained - counts.lost, counts.discordant
    return _bounds(counts.n, Fraction(total), Fraction(squares), check_z(z))


def paired_loss(
    candidate: Sequence[float], reference: Sequence[float], *, z: float
) -> PairedDifference:
    """Compare aligned per-case losses. Unit: that of the losses (nats); positive is worse.

    Errors: ValueError if the sequences are empty, differ in length, hold one case only, or hold
    anything but finite numbers, if a result overflows, or if z is not finite and positive.
    Source: see the module.
    """
    differences = loss_differences(candidate, reference)
    total = _exact_sum(differences)
    squares = _exact_sum_of_squares(differences)
    return _bounds(len(differences), total, squares, check_z(z))


def loss_differences(candidate: Sequence[float], reference: Sequence[float]) -> tuple[float, ...]:
    """Return candidate minus reference for each case, in the unit of the losses.

    Errors: ValueError if the sequences are empty, differ in length, or hold anything but finite
    numbers, or if a difference overflows.
    """
    n = check_same_length(candidate, reference)
    differences = []
    for index in range(n):
        difference = _finite("candidate", candidate[index], index) - _finite(
            "reference", reference[index], index
        )
        if not math.isfinite(difference):
            raise ValueError(f"the difference at case {index} is not finite")
        differences.append(difference)
    return tuple(differences)


def _finite(name: str, value: object, index: int) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} case {index} is not a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} case {index} is not finite")
    return number


def _bounds(n: int, total: Fraction, squares: Fraction, z: float) -> PairedDifference:
    if n < 2:
        raise ValueError("a standard deviation needs at least two cases, got 1")
    variance = (squares - total * total / n) / (n - 1)
    deviation = _square_root(variance)
    margin = z * deviation / math.sqrt(n)
    mean = float(total / n)
    if not math.isfinite(mean - margin) or not math.isfinite(mean + margin):
        raise ValueError("the bound is not finite")
    return PairedDifference(
        n=n,
        mean=mean,
        standard_deviation=deviation,
        standard_error=deviation / math.sqrt(n),
        z=z,
        lower=mean - margin,
        upper=mean + margin,
    )


def _exact_sum(values: Sequence[float]) -> Fraction:
    by_denominator: dict[int, int] = {}
    for value in values:
        numerator, denominator = value.as_integer_ratio()
        by_denominator[denominator] = by_denominator.get(denominator, 0) + numerator
    return sum((Fraction(top, bottom) for bottom, top in by_denominator.items()), Fraction(0))


def _exact_sum_of_squares(values: Sequence[float]) -> Fraction:
    by_denominator: dict[int, int] = {}
    for value in values:
        numerator, denominator = value.as_integer_ratio()
        by_denominator[denominator] = by_denominator.get(denominator, 0) + numerator * numerator
    terms = (Fraction(top, bottom * bottom) for bottom, top in by_denominator.items())
    return sum(terms, Fraction(0))


def _square_root(value: Fraction) -> float:
    # A float of the variance would overflow or vanish long before its root does, so the root is
    # taken in integers: 75 bits and more, then rounded once.
    if value == 0:
        return 0.0
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    shift = (152 - bits) // 2
    root = math.isqrt(int(value * Fraction(4) ** shift))
    try:
        return float(root / Fraction(2) ** shift)
    except OverflowError:
        raise ValueError("the standard deviation is not finite") from None
