"""Newcombe's and Tango's intervals: published answers, the edges, and what must always hold."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from harness.statistics.counts import PairedCounts
from harness.statistics.intervals import Interval, newcombe, tango
from harness.statistics.normal import z_two_sided

settings.register_profile("no-deadline", deadline=None)  # a busy machine is not a fault
settings.load_profile("no-deadline")

METHODS = [newcombe, tango]
Z95 = z_two_sided(0.95)
Method = Callable[..., Interval]
COUNT = st.one_of(st.just(0), st.integers(0, 40), st.integers(0, 5000))
Z = st.floats(0.01, 8.0)


def counts(minimum: int = 1) -> st.SearchStrategy[PairedCounts]:
    tables = st.tuples(COUNT, COUNT, COUNT, COUNT).filter(lambda t: sum(t) >= minimum)
    return tables.map(lambda t: PairedCounts(*t))


def limits(interval: Interval, digits: int) -> tuple[float, float]:
    return round(interval.lower, digits), round(interval.upper, digits)


def by_counts(table: tuple[int, int, int, int]) -> PairedCounts:
    both, only_first, only_second, neither = table
    return PairedCounts(both=both, gained=only_first, lost=only_second, neither=neither)


class TestPublishedAnswers:
    def test_complete_response_before_and_after_treatment(self) -> None:
        table = by_counts((59, 6, 16, 80))
        assert limits(newcombe(table, z=Z95), 4) == (-0.1186, -0.0046)
        assert limits(tango(table, z=Z95), 4) == (-0.1240, -0.0054)

    def test_newcombe_1998_method_10(self) -> None:
        assert limits(newcombe(by_counts((20, 12, 2, 16)), z=Z95), 4) == (0.0562, 0.3292)

    def test_airway_responsiveness_in_21_children(self) -> None:
        table = by_counts((1, 1, 7, 12))
        assert limits(newcombe(table, z=Z95), 3) == (-0.507, -0.026)
        assert limits(tango(table, z=Z95), 3) == (-0.517, -0.026)


class TestEdges:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("table", [(100, 0, 0, 0), (0, 0, 0, 100), (1, 0, 0, 0), (0, 0, 0, 1)])
    def test_no_discordant_case_keeps_its_width(
        self, method: Method, table: tuple[int, int, int, int]
    ) -> None:
        interval = method(by_counts(table), z=2.576)
        assert interval.estimate == 0
        assert interval.lower == pytest.approx(-interval.upper)
        share = 2.576**2 / (sum(table) + 2.576**2)
        assert interval.upper == pytest.approx(share)

    @pytest.mark.parametrize("n", [1, 2, 100])
    def test_every_case_gained(self, n: int) -> None:
        z = 2.576
        by_tango = tango(PairedCounts(0, n, 0, 0), z=z)
        assert by_tango.upper == 1.0
        assert by_tango.lower == pytest.approx((n - z * z) / (n + z * z))
        by_newcombe = newcombe(PairedCounts(0, n, 0, 0), z=z)
        # Two Wilson limits at z^2/(n+z^2) from 1 and from 0, uncorrelated.
        assert by_newcombe.upper == 1.0
        assert by_newcombe.lower == pytest.approx(1 - math.sqrt(2) * z * z / (n + z * z))

    @pytest.mark.parametrize("lost", [1, 10, 40])
    def test_none_gained_is_a_wilson_limit_also_at_the_double_root(self, lost: int) -> None:
        n = 100
        # With none gained, Tango's limit meets Wilson's from lost / (2n - lost) on; just there the
        # quadratic for the discordant probability has a double root.
        limit = lost / (2 * n - lost) * (1 + 1e-9)
        z = (lost - n * limit) / math.sqrt(n * limit * (1 - limit))
        interval = tango(PairedCounts(50 - lost, 0, lost, 50), z=z)
        assert interval.upper == pytest.approx(-limit, rel=1e-12)

    @pytest.mark.parametrize("method", METHODS)
    def test_half_gained_half_lost(self, method: Method) -> None:
        interval = method(PairedCounts(0, 50, 50, 0), z=Z95)
        assert interval.lower == -interval.upper
        assert 0.15 < interval.upper < 0.25

    @pytest.mark.parametrize("method", METHODS)
    def test_large_samples_approach_the_declared_bound(self, method: Method) -> None:
        table = PairedCounts(73_300, 500, 1_500, 24_700)
        interval = method(table, z=2.576)
        assert interval.lower == pytest.approx(-0.01 - 2.576 * 0.1410673598 / 316.2277660, abs=2e-5)


def slow_tango_upper(table: PairedCounts, z: float) -> float:
    """The same root found by another route: profile likelihood in q by search, then brentq."""

    def score(difference: float) -> float:
        a, b = table.gained, table.lost
        lowest, highest = max(0.0, -difference), (1 - difference) / 2

        def slope(q: float) -> float:
            value = a / (q + difference) if a else 0.0
            value += b / q if b else 0.0
            rest = table.n - a - b
            return value - (2 * rest / (1 - 2 * q - difference) if rest else 0.0)

        margin = 1e-15
        low, high = lowest + margin, highest - margin
        if low >= high or slope(low) <= 0:
            q = lowest
        elif slope(high) >= 0:
            q = highest
        else:
            q = brentq(slope, low, high, xtol=1e-16)
        variance = table.n * (2 * q + difference * (1 - difference))
        return float((a - b - table.n * difference) + z * math.sqrt(max(variance, 0.0)))

    estimate = (table.gained - table.lost) / table.n
    return float(brentq(score, estimate, 1 - 1e-9, xtol=1e-12))


@pytest.mark.parametrize(
    "table",
    [
        (59, 6, 16, 80),
        (20, 12, 2, 16),
        (1, 1, 7, 12),
        (0, 3, 9, 2),
        (733, 5, 15, 271),
        (5, 0, 4, 1),
    ],
)
def test_tango_agrees_with_a_search_over_the_profile_likelihood(
    table: tuple[int, int, int, int],
) -> None:
    paired = by_counts(table)
    for z in (1.0, Z95, 2.576):
        interval = tango(paired, z=z)
        assert interval.upper == pytest.approx(slow_tango_upper(paired, z), abs=1e-7)
        assert interval.lower == pytest.approx(-slow_tango_upper(paired.swapped(), z), abs=1e-7)


class TestAnyCounts:
    @pytest.mark.parametrize("method", METHODS)
    @given(table=counts(), z=Z)
    def test_stays_inside_and_brackets_the_estimate(
        self, method: Method, table: PairedCounts, z: float
    ) -> None:
        interval = method(table, z=z)
        assert interval.estimate == (table.gained - table.lost) / table.n
        assert -1 <= interval.lower <= interval.estimate <= interval.upper <= 1
        assert interval.lower < interval.upper

    @pytest.mark.parametrize("method", METHODS)
    @given(table=counts(), z=Z)
    def test_swapping_the_roles_negates(
        self, method: Method, table: PairedCounts, z: float
    ) -> None:
        interval, swapped = method(table, z=z), method(table.swapped(), z=z)
        assert (swapped.lower, swapped.upper) == (-interval.upper, -interval.lower)

    @pytest.mark.parametrize("method", METHODS)
    @given(table=counts(), z1=Z, z2=Z)
    def test_a_larger_z_never_narrows(
        self, method: Method, table: PairedCounts, z1: float, z2: float
    ) -> None:
        narrow, wide = method(table, z=min(z1, z2)), method(table, z=max(z1, z2))
        assert wide.lower <= narrow.lower + 1e-12
        assert wide.upper >= narrow.upper - 1e-12

    @given(counts(), Z)
    def test_tango_does_not_depend_on_which_concordant_cases_were_correct(
        self, table: PairedCounts, z: float
    ) -> None:
        moved = PairedCounts(0, table.gained, table.lost, table.both + table.neither)
        assert tango(moved, z=z) == tango(table, z=z)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("z", [0, -1, math.nan, math.inf])
    def test_z_that_declares_nothing_is_refused(self, method: Method, z: float) -> None:
        with pytest.raises(ValueError, match="z must be finite and positive"):
            method(PairedCounts(1, 1, 1, 1), z=z)
