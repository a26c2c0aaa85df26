"""McNemar's test on the cases that exactly one of two models answered correctly.

Under the null each of the n = gained + lost discordant cases falls either way with probability
one half. No discordant case is no evidence: p = 1 in every version here (a library that returns 0
for it is wrong). A p below 5e-324 is 0.0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from harness.statistics.counts import check_count
from harness.statistics.normal import upper_tail

Alternative = Literal["gain", "loss", "two-sided"]
"""'gain': the candidate is better; 'loss': it is worse; 'two-sided': it differs."""

Method = Literal["exact", "mid-p", "asymptotic", "asymptotic-corrected"]

# The exact tail is summed in integers of n bits: this many cases take about a second.
MAX_EXACT_DISCORDANT = 200_000


@dataclass(frozen=True, slots=True)
class McNemar:
    """One test. Counts are cases, p is a probability, z counts standard errors."""

    method: Method
    alternative: Alternative
    gained: int
    lost: int
    p: float
    z: float | None
    """Signed normal deviate of the asymptotic versions (its square is the chi-square statistic);
    positive when the candidate gains. None in the binomial versions."""


def exact(gained: int, lost: int, *, alternative: Alternative) -> McNemar:
    """Test by the binomial tail: p = P(X >= gained), X ~ Binomial(gained + lost, 1/2), for 'gain'.

    'loss' swaps the counts; 'two-sided' doubles the smaller of both tails, at most 1.
    Errors: ValueError if a count is not a non-negative int, if there are more than 200,000
    discordant cases, or if the alternative is unknown.
    Source: Fagerland, Lydersen and Laake, BMC Medical Research Methodology 13:91 (2013),
    'McNemar exact conditional test'.
    """
    n = _check(gained, lost, alternative, exact_sum=True)
    p = _ratio(_exact_tail(gained, lost, alternative), n)
    return McNemar("exact", alternative, gained, lost, p, None)


def mid_p(gained: int, lost: int, *, alternative: Alternative) -> McNemar:
    """Test by the binomial tail less half the probability of the observed table.

    Two-sided: the exact p less the point probability, and 1 - point/2 where gained = lost.
    One-sided: the exact p less point/2.
    Errors: ValueError as for `exact`.
    Source: Fagerland, Lydersen and Laake, BMC Medical Research Methodology 13:91 (2013),
    'McNemar mid-p test', and its supplement, equation 2.
    """
    n = _check(gained, lost, alternative, exact_sum=True)
    if n == 0:
        return McNemar("mid-p", alternative, gained, lost, 1.0, None)
    doubled = 2 * _exact_tail(gained, lost, alternative)
    point = math.comb(n, gained)
    doubled -= 2 * point if alternative == "two-sided" and gained != lost else point
    return McNemar("mid-p", alternative, gained, lost, _ratio(doubled, n + 1), None)


def asymptotic(gained: int, lost: int, *, alternative: Alternative) -> McNemar:
    """Test by z = (gained - lost) / sqrt(gained + lost), without continuity correction.

    Errors: ValueError if a count is not a non-negative int or the alternative is unknown.
    Source: McNemar, Psychometrika 12 (1947) 153-157; Fagerland et al. (2013), 'asymptotic
    McNemar test'.
    """
    n = _check(gained, lost, alternative)
    z = (gained - lost) / math.sqrt(n) if n else 0.0
    return _normal("asymptotic", alternative, gained, lost, z)


def asymptotic_corrected(gained: int, lost: int, *, alternative: Alternative) -> McNemar:
    """Test by z = (|gained - lost| - 1) / sqrt(gained + lost), with Edwards' continuity correction.

    Two-sided, the correction never crosses zero: gained = lost is p = 1. One-sided, it moves the
    observed count by one half against the alternative.
    Errors: ValueError if a count is not a non-negative int or the alternative is unknown.
    Source: Edwards, Psychometrika 13 (1948) 185-187; Fagerland et al. (2013), 'asymptotic McNemar
    test with continuity correction'.
    """
    n = _check(gained, lost, alternative)
    difference = gained - lost
    if alternative == "gain":
        difference -= 1
    elif alternative == "loss":
        difference += 1
    else:
        magnitude = max(abs(difference) - 1, 0)
        difference = magnitude if difference > 0 else -magnitude
    z = difference / math.sqrt(n) if n else 0.0
    return _normal("asymptotic-corrected", alternative, gained, lost, z)


def _check(gained: int, lost: int, alternative: str, exact_sum: bool = False) -> int:
    check_count("gained", gained)
    check_count("lost", lost)
    if alternative not in ("gain", "loss", "two-sided"):
        raise ValueError(f"alternative must be gain, loss or two-sided, got {alternative!r}")
    if exact_sum and gained + lost > MAX_EXACT_DISCORDANT:
        raise ValueError(
            f"{gained + lost} discordant cases are too many to sum exactly: use the asymptotic test"
        )
    return gained + lost


def _normal(method: Method, alternative: Alternative, gained: int, lost: int, z: float) -> McNemar:
    if gained + lost == 0:
        p = 1.0
    elif alternative == "two-sided":
        p = 2 * upper_tail(abs(z))
    else:
        p = upper_tail(z if alternative == "gain" else -z)
    return McNemar(method, alternative, gained, lost, p, z)


def _exact_tail(gained: int, lost: int, alternative: Alternative) -> int:
    """The exact p times 2**n, as an integer."""
    n = gained + lost
    if alternative == "two-sided":
        return min(1 << n, 2 * _lower_tail(n, min(gained, lost)))
    # P(X >= gained) = P(X <= lost), because one half is symmetric.
    return _lower_tail(n, lost if alternative == "gain" else gained)


def _lower_tail(n: int, k: int) -> int:
    """Sum of C(n, i) for i from 0 to k."""
    if 2 * k >= n:
        # The complement is the shorter sum, and its terms fall from the first one on.
        return (1 << n) - (_lower_tail(n, n - k - 1) if k < n else 0)
    term = total = math.comb(n, k)
    for i in range(k, 0, -1):
        term = term * i // (n - i + 1)
        total += term
        if term * i << 80 < total:
            break  # the i terms left are smaller still: under 2**-80 of the sum together
    return total


def _ratio(numerator: int, n: int) -> float:
    return numerator / (1 << n)  # Python rounds the quotient of two integers correctly
