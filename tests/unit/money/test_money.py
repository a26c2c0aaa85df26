"""Money is exact: the batched study's example to the last digit, and no float anywhere."""

from __future__ import annotations

from decimal import Decimal, Inexact
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import money

AMOUNT = st.decimals(min_value=0, max_value=999_999, places=9, allow_nan=False)


class TestTheBatchedStudysBound:
    def test_traffic_to_the_last_digit(self) -> None:
        assert money.price_of_bytes(2_723_269_786_844, "0.02") == "54.46539573688"

    def test_total_to_the_last_digit(self) -> None:
        traffic = money.price_of_bytes(2_723_269_786_844, "0.02")
        assert money.total([traffic, "12.636554723575202", "10"]) == "77.101950460455202"

    def test_floats_would_not_give_it(self) -> None:
        floats = 2_723_269_786_844 * 0.02 / 10**9 + 12.636554723575202 + 10
        assert repr(floats) != "77.101950460455202"


class TestAmounts:
    @pytest.mark.parametrize(
        "text", ["1e3", "-1", "+1", "NaN", "Infinity", "1.", ".5", "01", "", " 1", "1,000", "١"]
    )
    def test_what_is_no_amount_is_an_error(self, text: str) -> None:
        with pytest.raises(ValueError, match="plain decimal"):
            money.amount(text)

    @pytest.mark.parametrize("value", [1.5, 1, None, Decimal(1)])
    def test_only_text_is_an_amount(self, value: object) -> None:
        with pytest.raises(ValueError, match="plain decimal"):
            money.amount(value)  # type: ignore[arg-type]

    @given(AMOUNT)
    def test_text_and_back_is_the_same(self, value: Decimal) -> None:
        assert money.amount(money.text(value)) == value

    def test_text_has_no_exponent_and_no_trailing_zeros(self) -> None:
        assert money.text(Decimal("1E+2")) == "100"
        assert money.text(Decimal("2.500")) == "2.5"
        assert money.text(Decimal("0E-8")) == "0"

    @pytest.mark.parametrize("value", ["-1", "NaN", "Infinity", "1e-19", "1e9"])
    def test_what_cannot_be_written_is_an_error(self, value: str) -> None:
        with pytest.raises(ValueError):
            money.text(Decimal(value))


class TestArithmetic:
    @given(st.lists(AMOUNT, max_size=30))
    def test_a_sum_is_that_of_fractions(self, values: list[Decimal]) -> None:
        assert Fraction(money.add(values)) == sum(map(Fraction, values), Fraction(0))

    @given(st.integers(0, 2**63), AMOUNT)
    def test_a_product_is_that_of_fractions(self, quantity: int, price: Decimal) -> None:
        assert Fraction(money.multiply(quantity, price)) == quantity * Fraction(price)

    def test_a_sum_that_would_be_rounded_fails(self) -> None:
        with pytest.raises(Inexact):
            money.add([Decimal("1e90"), Decimal("1e-90")])

    def test_a_product_that_would_be_rounded_fails(self) -> None:
        with pytest.raises(Inexact):
            money.multiply(Decimal(10**50 + 1), Decimal(10**50 + 1))

    @given(st.integers(0, 2**63))
    def test_bytes_are_exact(self, count: int) -> None:
        assert Fraction(money.gigabytes(count)) == Fraction(count, 10**9)

    @given(st.integers(0, 10**12))
    def test_hours_are_rounded_up_by_less_than_the_last_place(self, seconds: int) -> None:
        excess = Fraction(money.hours(seconds)) - Fraction(seconds, 3600)
        assert 0 <= excess < Fraction(1, 10**money.PLACES)

    @given(st.integers(0, 10**6), st.integers(0, 10**9))
    def test_unit_months_are_never_below_the_true_share(self, units: int, seconds: int) -> None:
        excess = Fraction(money.unit_months(units, seconds)) - Fraction(units * seconds, 2592000)
        assert 0 <= excess < Fraction(1, 10**money.PLACES)

    def test_a_host_is_billed_a_minute_at_least(self) -> None:
        assert money.billed_hours(1) == money.billed_hours(60) == money.hours(60)
        assert money.billed_hours(61) == money.hours(61) > money.hours(60)

    def test_observed_seconds_may_have_microseconds(self) -> None:
        assert money.hours(Decimal("3600.000001")) == Decimal("1.000000000278")

    def test_gigabytes_of_a_plan_are_taken_as_written(self) -> None:
        assert money.bytes_up(107.3741824) == 100 * 2**30
        assert money.bytes_up(0.1) == 10**8
        assert money.bytes_up(1e-10) == 1
