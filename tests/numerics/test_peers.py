"""A peer that dies is noticed, one that is done is not."""

from __future__ import annotations

from tests.numerics import work
from tests.numerics.ranks_pool import run_ranks


def test_ranks_that_are_done_lose_nobody() -> None:
    assert run_ranks(work.watch_peers, 3, None) == [[], [], []]


def test_everybody_notices_a_rank_that_dies() -> None:
    """Rank 0 sees rank 2 go; when it leaves in turn, rank 1 sees that."""
    assert run_ranks(work.watch_peers, 3, 2) == [["a peer"], ["rank 0"], ["died"]]
