"""The point of no return: earlier for more bytes and slower links, never after the deadline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.leaving import (
    ASSUMED_BYTES_PER_S,
    FIXED_S,
    point_of_no_return,
    seconds_to_leave,
    slowest,
)

DEADLINE = datetime(2026, 11, 30, 12, tzinfo=UTC)
sizes = st.integers(0, 10**13)
rates = st.floats(1.0, 1e10)


def test_a_worked_example() -> None:
    """6 GB up and 9 GB read back at 50 MB/s: 300 s twice, and 300 s for the rest."""
    assert seconds_to_leave(6 * 10**9, 9 * 10**9, 50e6) == 900.0
    found = point_of_no_return(DEADLINE, 6 * 10**9, 9 * 10**9, 50e6)
    assert found == DEADLINE - timedelta(minutes=15)


@given(sizes, sizes, rates, st.integers(0, 10**12), st.floats(1.0, 10.0))
def test_more_or_slower_is_never_later(
    up: int, back: int, rate: float, more: int, slower: float
) -> None:
    first = seconds_to_leave(up, back, rate)
    assert FIXED_S <= first <= seconds_to_leave(up + more, back, rate)
    assert first <= seconds_to_leave(up, back + more, rate)
    assert first <= seconds_to_leave(up, back, rate / slower)


def test_the_slowest_measured_transfer_counts_and_small_ones_do_not() -> None:
    assert slowest([(10**9, 10.0), (10**9, 25.0), (100, 5.0)]) == 4e7
    assert slowest([(100, 5.0)]) == slowest([]) == ASSUMED_BYTES_PER_S


@pytest.mark.parametrize("values", [(1, 1, 0.0), (1, 1, -1.0), (-1, 1, 1.0), (1, -1, 1.0)])
def test_nonsense_is_refused(values: tuple[int, int, float]) -> None:
    with pytest.raises(ValueError, match="above zero"):
        seconds_to_leave(*values)
