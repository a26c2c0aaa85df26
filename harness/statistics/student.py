"""Student's t on per-case differences, beside the declared normal bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtr

from harness.statistics.paired import paired_loss


@dataclass(frozen=True, slots=True)
class PairedT:
    """Student's paired t test of a mean difference of zero."""

    n: int
    mean: float
    """Candidate minus reference, in the unit of the cases."""
    t: float
    """Mean over its standard error; no unit."""
    degrees_of_freedom: int
    p_two_sided: float
    p_greater: float
    """One-sided, against a mean difference above zero."""
    p_less: float
    """One-sided, against a mean difference below zero."""


def paired_t(candidate: Sequence[float], reference: Sequence[float]) -> PairedT:
    """Test whether aligned per-case values differ in mean. Unit of mean: that of the values.

    Errors: ValueError if the sequences are empty, differ in length, hold one case only or anything
    but finite numbers, or if all differences are equal: t is then 0/0 or infinite.
    Source: Student, The Probable Error of a Mean, Biometrika 6 (1908), section IX (sleep data).
    """
    difference = paired_loss(candidate, reference, z=1.0)
    if difference.standard_deviation == 0:
        raise ValueError("all differences are equal, so t is not defined")
    t = difference.mean / difference.standard_error if difference.standard_error else math.inf
    if not math.isfinite(t):
        raise ValueError("t is not finite")
    freedom = difference.n - 1
    # stdtr is the lower tail; asking it for -|t| keeps small p-values exact.
    tail = float(stdtr(freedom, -abs(t)))
    return PairedT(
        n=difference.n,
        mean=difference.mean,
        t=t,
        degrees_of_freedom=freedom,
        p_two_sided=min(1.0, 2 * tail),
        p_greater=tail if t > 0 else 1 - tail,
        p_less=tail if t < 0 else 1 - tail,
    )
