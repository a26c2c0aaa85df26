"""McNemar's test in four versions: published answers, exactness at size, and the empty case."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from harness.statistics.mcnemar import (
    Alternative,
    McNemar,
    asymptotic,
    asymptotic_corrected,
    exact,
    mid_p,
)

settings.register_profile("no-deadline", deadline=None)  # a busy machine is not a fault
settings.load_profile("no-deadline")

VERSIONS = [exact, mid_p, asymptotic, asymptotic_corrected]
ALTERNATIVES: list[Alternative] = ["gain", "loss", "two-sided"]
COUNT = st.one_of(st.integers(0, 12), st.integers(0, 800))
Version = Callable[..., McNemar]


class TestPublishedAnswers:
    def test_complete_response_before_and_after_treatment(self) -> None:
        assert round(exact(6, 16, alternative="two-sided").p, 6) == 0.052479
        assert round(mid_p(6, 16, alternative="two-sided").p, 6) == 0.034690
        assert round(asymptotic(6, 16, alternative="two-sided").p, 6) == 0.033006

    def test_discordant_30_and_60(self) -> None:
        assert round(exact(30, 60, alternative="two-sided").p, 5) == 0.00206

    def test_discordant_10_and_30(self) -> None:
        assert round(exact(10, 30, alternative="two-sided").p, 6) == 0.002221


class TestTheStudiesOwnFigures:
    def test_146_gained_and_none_lost(self) -> None:
        p = exact(146, 0, alternative="gain").p
        assert p == 2.0**-146
        assert f"{p:.2e}" == "1.12e-44"

    def test_27_gained_and_10_lost(self) -> None:
        assert round(exact(27, 10, alternative="gain").p, 6) == 0.003816
        assert round(exact(27, 10, alternative="two-sided").p, 6) == 0.007632


class TestNoDiscordantPair:
    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("alternative", ALTERNATIVES)
    def test_is_p_one(self, version: Version, alternative: Alternative) -> None:
        assert version(0, 0, alternative=alternative).p == 1.0


class TestExactness:
    @given(COUNT, COUNT)
    def test_the_tail_is_the_rounded_rational(self, gained: int, lost: int) -> None:
        n = gained + lost
        tail = sum(math.comb(n, i) for i in range(gained, n + 1))
        assert exact(gained, lost, alternative="gain").p == float(Fraction(tail, 2**n))

    @settings(max_examples=30)
    @given(st.integers(0, 20_000), st.integers(0, 20_000))
    def test_large_counts_agree_with_an_independent_tail(self, gained: int, lost: int) -> None:
        expected = float(binom.sf(gained - 1, gained + lost, 0.5))
        result = exact(gained, lost, alternative="gain").p
        assert result == pytest.approx(expected, rel=1e-8, abs=1e-300)

    @pytest.mark.parametrize("gained", [50_000, 50_001, 50_500, 0, 100_000])
    def test_a_hundred_thousand_discordant_cases(self, gained: int) -> None:
        result = exact(gained, 100_000 - gained, alternative="gain").p
        assert result == pytest.approx(float(binom.sf(gained - 1, 100_000, 0.5)), rel=1e-9)

    @pytest.mark.parametrize("version", [exact, mid_p])
    def test_more_than_can_be_summed_is_refused(self, version: Version) -> None:
        with pytest.raises(ValueError, match="too many to sum exactly"):
            version(100_001, 100_000, alternative="gain")


class TestMidP:
    @given(COUNT, COUNT)
    def test_is_the_published_formula(self, gained: int, lost: int) -> None:
        n = gained + lost
        if n == 0:
            return
        point = math.comb(n, gained) / 2**n
        two_sided = mid_p(gained, lost, alternative="two-sided").p
        if gained == lost:
            assert two_sided == pytest.approx(1 - point / 2, rel=1e-12)
        else:
            expected = exact(gained, lost, alternative="two-sided").p - point
            assert two_sided == pytest.approx(expected, rel=1e-12, abs=1e-15)
        gain = exact(gained, lost, alternative="gain").p - point / 2
        assert mid_p(gained, lost, alternative="gain").p == pytest.approx(gain, abs=1e-15)

    @given(COUNT, COUNT)
    def test_one_sided_values_sum_to_one(self, gained: int, lost: int) -> None:
        if gained + lost == 0:
            return
        gain = mid_p(gained, lost, alternative="gain").p
        assert gain + mid_p(gained, lost, alternative="loss").p == pytest.approx(1, rel=1e-15)


class TestAsymptotic:
    def test_z_squared_is_the_chi_square_statistic(self) -> None:
        z = asymptotic(6, 16, alternative="two-sided").z
        corrected = asymptotic_corrected(6, 16, alternative="two-sided").z
        assert z is not None and corrected is not None
        assert z < 0 and corrected < 0
        assert z * z == pytest.approx(100 / 22)
        assert corrected * corrected == pytest.approx(81 / 22)

    @given(COUNT, COUNT)
    def test_the_correction_never_makes_a_two_sided_p_smaller(self, gained: int, lost: int) -> None:
        plain = asymptotic(gained, lost, alternative="two-sided").p
        assert asymptotic_corrected(gained, lost, alternative="two-sided").p >= plain

    @pytest.mark.parametrize("alternative", ALTERNATIVES)
    def test_the_corrected_p_approximates_the_exact_p(self, alternative: Alternative) -> None:
        for gained in range(40, 61):
            approximate = asymptotic_corrected(gained, 100 - gained, alternative=alternative).p
            expected = exact(gained, 100 - gained, alternative=alternative).p
            assert approximate == pytest.approx(expected, abs=2e-3)


class TestAnyCounts:
    @pytest.mark.parametrize("version", VERSIONS)
    @given(gained=COUNT, lost=COUNT)
    def test_p_is_a_probability_and_swapping_turns_the_alternative(
        self, version: Version, gained: int, lost: int
    ) -> None:
        for alternative in ALTERNATIVES:
            assert 0 <= version(gained, lost, alternative=alternative).p <= 1
        gain = version(gained, lost, alternative="gain")
        loss = version(lost, gained, alternative="loss")
        assert gain.p == loss.p
        two_sided = version(gained, lost, alternative="two-sided").p
        assert two_sided == version(lost, gained, alternative="two-sided").p

    @pytest.mark.parametrize("version", VERSIONS)
    @given(gained=st.integers(1, 400), lost=st.integers(0, 400))
    def test_one_more_gain_instead_of_a_loss_is_never_less_evidence(
        self, version: Version, gained: int, lost: int
    ) -> None:
        fewer = version(gained - 1, lost + 1, alternative="gain").p
        assert version(gained, lost, alternative="gain").p <= fewer

    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("bad", [-1, 1.0, True, math.nan, math.inf, "3", None])
    def test_counts_that_are_not_counts_are_refused(self, version: Version, bad: int) -> None:
        for gained, lost in ((bad, 1), (1, bad)):
            with pytest.raises(ValueError) as caught:
                version(gained, lost, alternative="gain")
            assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_an_unknown_alternative_is_refused(self, version: Version) -> None:
        with pytest.raises(ValueError, match="gain, loss or two-sided"):
            version(1, 1, alternative="greater")
