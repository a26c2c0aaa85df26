"""Draws are the same for ever, and fair."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.tasks.draws import Draws

GOLDEN = [740, 149, 342, 822, 197, 919]
GOLDEN_ORDER = [5, 7, 3, 1, 2, 0, 6, 4]


def test_the_stream_never_changes() -> None:
    draws = Draws("seed", "test", 7)
    assert [draws.below(1000) for _ in range(6)] == GOLDEN
    assert Draws("seed", "test", 7).shuffled(range(8)) == GOLDEN_ORDER


def test_every_label_matters() -> None:
    streams = {
        tuple(Draws(*labels).below(10**9) for _ in range(1))
        for labels in (("a", "b"), ("ab",), ("a", "c"), ("a", 1), ("a", "1"), ("a", "b", 0))
    }
    assert len(streams) == 6


def test_numbers_are_drawn_equally_often() -> None:
    draws = Draws("fair")
    counts = Counter(draws.below(6) for _ in range(60_000))
    assert set(counts) == set(range(6))
    assert all(9_600 < count < 10_400 for count in counts.values())


@given(st.integers(1, 2**64), st.text(max_size=5))
def test_a_draw_is_below_its_bound(bound: int, label: str) -> None:
    assert 0 <= Draws(label).below(bound) < bound


@pytest.mark.parametrize("bound", [0, -1, 2**64 + 1])
def test_an_impossible_bound_is_an_error(bound: int) -> None:
    with pytest.raises(ValueError, match="not possible"):
        Draws("x").below(bound)


@given(st.lists(st.integers()), st.integers(0, 50))
def test_a_sample_has_no_item_twice(items: list[int], count: int) -> None:
    places = Draws("s").sample(range(len(items)), count)
    assert len(set(places)) == len(places) == min(count, len(items))
