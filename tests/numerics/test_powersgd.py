"""What PowerSGD promises: nothing is lost, dense when dense is asked for, exact at full rank."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.numerics import tiny, work
from tests.numerics.ranks_pool import run_ranks

SHAPES: dict[str, tuple[int, ...]] = {
    "a": (12, 20),
    "b": (12, 20),
    "tall": (30, 7),
    "cube": (6, 4, 5),
    "bias": (9,),
}
MATRICES = {"a", "b", "tall", "cube"}


def rounds(
    value: dict[str, Any],
    workers: int = 3,
    count: int = 3,
    dtype: torch.dtype = torch.float64,
    zero: str = "",
) -> list[list[dict[str, Any]]]:
    """By round, then by rank."""
    recipe = tiny.exchange_recipe(value)
    ranks = run_ranks(work.exchange_rounds, workers, recipe, count, SHAPES, dtype, zero)
    return [list(seen) for seen in zip(*ranks, strict=True)]


def total(ranks: list[dict[str, Any]], part: str, name: str) -> Tensor:
    zero = torch.zeros((), dtype=torch.float64)
    return sum((rank[part].get(name, zero).double() for rank in ranks), zero)


@pytest.mark.parametrize("residual", ["averaged", "local"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_sent_plus_kept_is_what_all_ranks_had(residual: str, dtype: torch.dtype) -> None:
    for ranks in rounds(tiny.powersgd(residual=residual, rank=2), dtype=dtype):
        for name, shape in SHAPES.items():
            had = total(ranks, "own", name)
            if name in MATRICES:
                had = had.reshape(shape[0], -1) + total(ranks, "before", name)
            sent = ranks[0]["out"][name].double().reshape(had.shape)
            kept = total(ranks, "after", name)
            tolerance = 1e-12 if dtype == torch.float64 else 1e-5
            torch.testing.assert_close(sent + kept, had, rtol=0, atol=tolerance)
    assert kept.shape == ()  # the bias, last in the list, is never kept


@pytest.mark.parametrize("residual", ["averaged", "local"])
def test_variants_keep_different_things(residual: str) -> None:
    (ranks,) = rounds(tiny.powersgd(residual=residual, rank=2), count=1)
    own, kept = ranks[0]["own"]["a"], ranks[0]["after"]["a"]
    if residual == "averaged":
        torch.testing.assert_close(kept, own - ranks[0]["out"]["a"] / 3)
    else:  # what stays is orthogonal to what the rank sent
        torch.testing.assert_close((own - kept).T @ kept, torch.zeros(20, 20).double())


def test_every_rank_gets_the_same_bits() -> None:
    for ranks in rounds(tiny.powersgd(), dtype=torch.float32):
        for rank in ranks[1:]:
            assert all(torch.equal(rank["out"][name], ranks[0]["out"][name]) for name in SHAPES)


def test_full_rank_equals_dense() -> None:
    full = rounds(tiny.powersgd(rank=30))
    for compressed, dense in zip(full, rounds({"kind": "dense"}), strict=True):
        for name in SHAPES:
            torch.testing.assert_close(
                compressed[0]["out"][name], dense[0]["out"][name], rtol=0, atol=1e-12
            )


def test_dense_updates_equal_dense_and_keep_nothing() -> None:
    warming = rounds(tiny.powersgd(dense_updates=2))
    dense = rounds({"kind": "dense"})
    for number in (0, 1):
        for name in SHAPES:
            assert torch.equal(warming[number][0]["out"][name], dense[number][0]["out"][name])
        assert warming[number][0]["after"] == {}
        assert warming[number][0]["sent_bytes"] == dense[number][0]["sent_bytes"]
    assert warming[2][0]["after"].keys() == MATRICES
    assert warming[2][0]["sent_bytes"] < dense[2][0]["sent_bytes"]


def test_a_gradient_that_is_zero_stays_zero_and_harmless() -> None:
    for ranks in rounds(tiny.powersgd(epsilon=0), zero="a"):
        assert torch.equal(ranks[0]["out"]["a"], torch.zeros(12, 20).double())
        assert ranks[0]["out"]["b"].isfinite().all()


def test_without_feedback_nothing_is_kept() -> None:
    for ranks in rounds(tiny.powersgd(error_feedback=False, rank=2)):
        assert ranks[0]["after"] == {}


def test_small_gains_are_sent_whole() -> None:
    (ranks,) = rounds(tiny.powersgd(rank=2, min_compression_rate=3.5), count=1)
    # 12×20: 240 numbers to 64, 3.75 times fewer; 30×7: 210 to 74; 6×20: 120 to 52.
    assert ranks[0]["after"].keys() == {"a", "b"}
    torch.testing.assert_close(ranks[0]["out"]["tall"], total(ranks, "own", "tall"))


def test_factors_depend_on_the_name_alone_and_stay_warm() -> None:
    first, second, _ = rounds(tiny.powersgd(rank=2))
    assert not torch.equal(first[0]["factors"]["q.a"], first[0]["factors"]["q.b"])
    for ranks in (first, second):
        assert torch.equal(ranks[0]["factors"]["q.a"], ranks[2]["factors"]["q.a"])


def test_a_constant_gradient_arrives_in_full_over_time() -> None:
    """Error feedback: the mean of what was sent tends to the gradient."""
    recipe = tiny.exchange_recipe(tiny.powersgd(rank=1))
    (seen,) = run_ranks(work.constant_gradient, 1, recipe, 60)
    own, sent = seen
    error = (sent / 60 - own).norm() / own.norm()
    assert error < 0.1


def test_bytes_are_those_of_the_factors() -> None:
    (ranks,) = rounds(tiny.powersgd(rank=2), workers=2, count=1)
    numbers = 2 * (12 + 20) * 2 + (30 + 7) * 2 + (6 + 20) * 2 + 9
    assert ranks[0]["sent_bytes"] == numbers * 8


def test_bf16_factors_halve_the_bytes_and_lose_nothing() -> None:
    narrow = rounds(tiny.powersgd(rank=2, factors="bf16"), workers=2, dtype=torch.float32)
    wide = rounds(tiny.powersgd(rank=2), workers=2, dtype=torch.float32)
    factors = 2 * (12 + 20) * 2 + (30 + 7) * 2 + (6 + 20) * 2
    assert wide[0][0]["sent_bytes"] - narrow[0][0]["sent_bytes"] == factors * 2
    for ranks, exact in zip(narrow, wide, strict=True):
        for name in MATRICES:
            had = total(ranks, "own", name).reshape(SHAPES[name][0], -1)
            had = had + total(ranks, "before", name)
            sent = ranks[0]["out"][name].double().reshape(had.shape)
            torch.testing.assert_close(sent + total(ranks, "after", name), had, rtol=0, atol=1e-5)
            assert torch.equal(ranks[0]["out"][name], ranks[1]["out"][name])
            if ranks is narrow[0]:  # later rounds have kept other things
                error = (ranks[0]["out"][name] - exact[0]["out"][name]).norm()
                assert 0 < error < 0.02 * exact[0]["out"][name].norm()


def test_dense_updates_in_bf16_err_by_their_rounding() -> None:
    wide = {"wide": (1200, 1200)}  # 5.8 MB: large enough to travel by itself
    recipes = [
        tiny.exchange_recipe(tiny.powersgd(dense_updates=1, dense_precision=kind))
        for kind in ("bf16", "fp32")
    ]
    narrow, exact = (
        run_ranks(work.exchange_rounds, 2, recipe, 1, wide, torch.float32)[0][0]
        for recipe in recipes
    )
    assert narrow["sent_bytes"] * 2 == exact["sent_bytes"] == 1200 * 1200 * 4
    error = (narrow["out"]["wide"] - exact["out"]["wide"]).norm() / exact["out"]["wide"].norm()
    assert 1e-4 < error < 2**-8


@pytest.mark.parametrize("rate", [0.1, 1.2])
def test_a_warm_up_of_higher_rank_hands_over_what_it_kept(rate: float) -> None:
    """At the rate 1.2 the tall matrix is sent whole while the rank is 6, and compressed later."""
    warm = tiny.powersgd(
        rank=2, min_compression_rate=rate, dense_updates=1, warmup={"updates": 1, "rank": 6}
    )
    dense, first, second = rounds(warm, dtype=torch.float64)
    assert dense[0]["after"] == {}
    assert first[0]["factors"]["q.a"].shape == (20, 6)
    assert second[0]["factors"]["q.a"].shape == (20, 2)
    assert ("q.tall" in first[0]["factors"]) == (rate < 1)
    assert "q.tall" in second[0]["factors"]
    for ranks in (first, second):
        for name in MATRICES & ranks[0]["after"].keys():
            had = total(ranks, "own", name).reshape(SHAPES[name][0], -1)
            had = had + total(ranks, "before", name)
            sent = ranks[0]["out"][name].reshape(had.shape)
            torch.testing.assert_close(sent + total(ranks, "after", name), had, rtol=0, atol=1e-12)
    assert first[0]["sent_bytes"] > second[0]["sent_bytes"]
