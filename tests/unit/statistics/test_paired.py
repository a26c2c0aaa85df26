"""The declared statistic: its published and recorded answers, and what must hold for any input."""

from __future__ import annotations

import math
import random
import statistics as stdlib

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.statistics.counts import PairedCounts, count_pairs
from harness.statistics.normal import coverage, z_two_sided
from harness.statistics.paired import (
    paired_accuracy,
    paired_accuracy_from_counts,
    paired_loss,
)
from harness.statistics.student import paired_t

settings.register_profile("no-deadline", deadline=None)  # a busy machine is not a fault
settings.load_profile("no-deadline")

# Student's sleep data (1908): additional hours of sleep under two drugs, ten patients.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

PAIR_AGAINST_SINGLE = PairedCounts(both=733, gained=5, lost=15, neither=271)

COUNT = st.one_of(st.just(0), st.integers(0, 40), st.integers(0, 5000))
Z = st.floats(0.01, 8.0)
LOSS = st.floats(-1e6, 1e6, allow_nan=False)


def counts(minimum: int = 1) -> st.SearchStrategy[PairedCounts]:
    tables = st.tuples(COUNT, COUNT, COUNT, COUNT).filter(lambda t: sum(t) >= minimum)
    return tables.map(lambda t: PairedCounts(*t))


def cases(table: PairedCounts, seed: int = 0) -> tuple[list[int], list[int]]:
    pairs = (
        [(1, 1)] * table.both
        + [(1, 0)] * table.gained
        + [(0, 1)] * table.lost
        + [(0, 0)] * table.neither
    )
    random.Random(seed).shuffle(pairs)
    return [c for c, _ in pairs], [r for _, r in pairs]


class TestTheStudiesOwnFigures:
    def test_pair_against_single_to_the_last_digit(self) -> None:
        result = paired_accuracy_from_counts(PAIR_AGAINST_SINGLE, z=2.576)
        assert result.mean == -0.009765625
        assert abs(result.lower - -0.020993825910438788) < 1e-15
        assert result.n == 1024

    def test_the_table_has_738_and_748_correct(self) -> None:
        table = PAIR_AGAINST_SINGLE
        assert (table.both + table.gained, table.both + table.lost) == (738, 748)

    def test_raw_sequences_give_the_same_digits_as_counts(self) -> None:
        candidate, reference = cases(PAIR_AGAINST_SINGLE)
        from_cases = paired_accuracy(candidate, reference, z=2.576)
        assert from_cases == paired_accuracy_from_counts(PAIR_AGAINST_SINGLE, z=2.576)

    def test_the_bound_passes_a_margin_of_three_points(self) -> None:
        assert paired_accuracy_from_counts(PAIR_AGAINST_SINGLE, z=2.576).lower > -0.03


class TestPublishedAnswers:
    def test_sleep_data(self) -> None:
        result = paired_t(SLEEP_2, SLEEP_1)
        assert round(result.mean, 2) == 1.58
        assert round(result.t, 4) == 4.0621
        assert round(result.p_two_sided, 6) == 0.002833
        assert result.degrees_of_freedom == 9

    def test_one_sided_p_of_the_sleep_data_sum_to_one(self) -> None:
        result = paired_t(SLEEP_2, SLEEP_1)
        assert result.p_greater == pytest.approx(result.p_two_sided / 2)
        assert result.p_greater + result.p_less == pytest.approx(1)

    def test_label_of_the_declared_z(self) -> None:
        assert coverage(2.576).label == "99.5 % one-sided, 99 % two-sided"
        assert coverage(1.959963984540054).label == "97.5 % one-sided, 95 % two-sided"

    def test_a_label_never_claims_certainty(self) -> None:
        for z in (4, 5, 6, 7, 8, 9, 40, 1000):
            assert "100" not in coverage(z).label

    def test_z_of_a_two_sided_confidence(self) -> None:
        assert round(z_two_sided(0.95), 6) == 1.959964
        assert round(z_two_sided(0.99), 6) == 2.575829


class TestAnyAccuracies:
    @given(counts(minimum=2), Z, st.integers(0, 3))
    def test_counts_and_cases_agree_exactly_in_any_order(
        self, table: PairedCounts, z: float, seed: int
    ) -> None:
        assume(table.n < 2000)
        candidate, reference = cases(table, seed)
        assert count_pairs(candidate, reference) == table
        expected = paired_accuracy_from_counts(table, z=z)
        assert paired_accuracy(candidate, reference, z=z) == expected
        assert paired_loss(candidate, reference, z=z) == expected

    @given(counts(minimum=2), Z)
    def test_bounds_bracket_the_mean_and_swapping_negates(
        self, table: PairedCounts, z: float
    ) -> None:
        result = paired_accuracy_from_counts(table, z=z)
        swapped = paired_accuracy_from_counts(table.swapped(), z=z)
        assert result.lower <= result.mean <= result.upper
        assert (swapped.mean, swapped.lower, swapped.upper) == (
            -result.mean,
            -result.upper,
            -result.lower,
        )

    @given(counts(minimum=2), Z, Z)
    def test_a_larger_z_never_narrows(self, table: PairedCounts, z1: float, z2: float) -> None:
        narrow = paired_accuracy_from_counts(table, z=min(z1, z2))
        wide = paired_accuracy_from_counts(table, z=max(z1, z2))
        assert wide.lower <= narrow.lower and narrow.upper <= wide.upper

    def test_numpy_and_bool_cases_count_as_well(self) -> None:
        assert count_pairs(np.array([1, 0]), np.array([False, True])) == (  # type: ignore[arg-type]
            PairedCounts(0, 1, 1, 0)
        )


class TestAnyLosses:
    @given(st.lists(st.tuples(LOSS, LOSS), min_size=2, max_size=60), Z)
    def test_agrees_with_the_standard_library(
        self, pairs: list[tuple[float, float]], z: float
    ) -> None:
        candidate, reference = [c for c, _ in pairs], [r for _, r in pairs]
        differences = [c - r for c, r in pairs]
        result = paired_loss(candidate, reference, z=z)
        assert result.mean == stdlib.mean(differences)
        assert result.standard_deviation == pytest.approx(stdlib.stdev(differences), rel=1e-15)
        assert result.lower <= result.mean <= result.upper

    @given(st.lists(st.tuples(LOSS, LOSS), min_size=2, max_size=60), Z, st.randoms())
    def test_order_is_free_and_swapping_negates(
        self, pairs: list[tuple[float, float]], z: float, rng: random.Random
    ) -> None:
        result = paired_loss([c for c, _ in pairs], [r for _, r in pairs], z=z)
        swapped = paired_loss([r for _, r in pairs], [c for c, _ in pairs], z=z)
        shuffled = list(pairs)
        rng.shuffle(shuffled)
        assert paired_loss([c for c, _ in shuffled], [r for _, r in shuffled], z=z) == result
        assert (swapped.lower, swapped.upper) == (-result.upper, -result.lower)

    @pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
    def test_spread_survives_where_its_square_would_not(self, scale: float) -> None:
        result = paired_loss([0.0, scale, 2 * scale], [0.0, 0.0, 0.0], z=2.0)
        assert result.standard_deviation == pytest.approx(scale, rel=1e-15)

    def test_tiny_differences_are_not_swallowed_by_large_ones(self) -> None:
        result = paired_loss([1e16, 1.0, -1e16, 1.0], [0.0] * 4, z=1.0)
        assert result.mean == 0.5

    def test_equal_differences_have_no_spread(self) -> None:
        result = paired_loss([0.1, 0.1, 0.1], [0.0, 0.0, 0.0], z=2.576)
        assert (result.lower, result.standard_deviation, result.upper) == (0.1, 0.0, 0.1)


BAD_LOSSES = [
    ([], []),
    ([1.0], [1.0]),
    ([1.0, 2.0], [1.0]),
    ([1.0, math.nan], [1.0, 2.0]),
    ([1.0, 2.0], [1.0, math.inf]),
    ([1.0, 1e308], [1.0, -1e308]),
    ([1.7e308, -1.7e308], [0.0, 0.0]),
    ([1.0, 10**400], [1.0, 2.0]),
    ([1.0, "2"], [1.0, 2.0]),
    ([1.0, True], [1.0, 2.0]),
    ([1.0, None], [1.0, 2.0]),
]


class TestRefusals:
    @pytest.mark.parametrize(("candidate", "reference"), BAD_LOSSES)
    def test_losses_that_are_not_finite_pairs(
        self, candidate: list[float], reference: list[float]
    ) -> None:
        with pytest.raises(ValueError) as caught:
            paired_loss(candidate, reference, z=2.576)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("bad", [2, -1, 0.5, math.nan, "1", None])
    def test_correctness_other_than_0_and_1(self, bad: int) -> None:
        with pytest.raises(ValueError, match="candidate case 1 is not 0 or 1"):
            paired_accuracy([1, bad], [1, 0], z=2.576)

    @pytest.mark.parametrize("z", [0, -2.576, math.nan, math.inf, 1001, "2.576", True, None])
    def test_z_that_declares_nothing(self, z: float) -> None:
        with pytest.raises(ValueError, match="z must be"):
            paired_accuracy_from_counts(PAIR_AGAINST_SINGLE, z=z)

    @pytest.mark.parametrize("bad", [-1, 1.0, True, "1", None, 2**53 + 1])
    def test_counts_that_are_not_counts(self, bad: int) -> None:
        with pytest.raises(ValueError, match="gained"):
            PairedCounts(1, bad, 1, 1)

    def test_no_case_at_all(self) -> None:
        with pytest.raises(ValueError, match="no cases"):
            PairedCounts(0, 0, 0, 0)

    def test_one_case_has_no_standard_deviation(self) -> None:
        with pytest.raises(ValueError, match="at least two cases"):
            paired_accuracy([1], [0], z=2.576)

    def test_t_of_equal_differences(self) -> None:
        with pytest.raises(ValueError, match="not defined"):
            paired_t([1.0, 2.0], [0.0, 1.0])

    @pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
    def test_confidence_outside_0_and_1(self, confidence: float) -> None:
        with pytest.raises(ValueError, match="confidence"):
            z_two_sided(confidence)


@given(st.lists(st.tuples(LOSS, LOSS), min_size=2, max_size=30))
def test_t_is_antisymmetric_and_p_is_a_probability(pairs: list[tuple[float, float]]) -> None:
    candidate, reference = [c for c, _ in pairs], [r for _, r in pairs]
    try:
        result = paired_t(candidate, reference)
    except ValueError:
        return
    swapped = paired_t(reference, candidate)
    assert swapped.t == -result.t
    assert (swapped.p_greater, swapped.p_less) == (result.p_less, result.p_greater)
    for p in (result.p_two_sided, result.p_greater, result.p_less):
        assert 0 <= p <= 1
