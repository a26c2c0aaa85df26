"""Ranks as threads of one process (bench/together.py) against ranks as processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from bench.together import Ranks, Threads
from tests.numerics import tiny, work
from tests.numerics.ranks_pool import run_ranks
from trainer import exchange, roots
from trainer.cutting import cut_of

WORKERS = 2
LEAN = tiny.powersgd(factors="bf16", warmup={"updates": 1, "rank": 8})


@pytest.mark.parametrize(
    "kind", [{"kind": "dense"}, tiny.powersgd(dense_updates=1, dense_precision="bf16"), LEAN]
)
def test_threads_end_bit_for_bit_where_processes_end(
    kind: dict[str, Any], model_folder: Path
) -> None:
    recipe = tiny.train(updates=4, exchange=kind)
    documents = tiny.draw_documents(32, seed=5)
    updates = [documents[start : start + 8] for start in range(0, 32, 8)]
    apart = run_ranks(work.train, WORKERS, model_folder, recipe, updates)
    state = work.make_state(model_folder, recipe, WORKERS)
    talks = [state.exchange] + [
        exchange.make(recipe.exchange, WORKERS, recipe.seed, state.parameters())
        for _ in range(WORKERS - 1)
    ]
    cuts = [cut_of(recipe, updates, rank, WORKERS) for rank in range(WORKERS)]
    together = Ranks(state, recipe, talks, cuts, work.CPU)
    for used, record in zip(updates, apart[0]["records"], strict=True):
        loss, sent = together.update(used)
        assert loss == pytest.approx(record.loss, rel=1e-12)
        assert sent.sent_bytes == record.sent_bytes
    assert roots.parameter_root(state.parameters()) == apart[0]["root"] == apart[1]["root"]


def test_a_rank_that_fails_ends_the_others() -> None:
    def part(rank: int) -> None:
        if rank == 1:
            raise ValueError("rank 1 fails")
        exchange.DenseExchange(WORKERS).reduce({"w": torch.ones(3)}, 1)

    with pytest.raises((ValueError, RuntimeError)):
        Threads(WORKERS).each(part)
