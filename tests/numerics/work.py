"""What ranks of the tests do in their own processes."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainer import checkpoint, exchange, loop, model, peers, roots, start
from trainer.batches import Document
from trainer.cutting import cut_of
from trainer.exchange import PowerSGD
from trainer.ranks import Rank
from trainer.recipe import Exchange, Train
from trainer.state import State
from trainer.timers import Stopwatch
from trainer.update import AdamW

CPU = torch.device("cpu")
ROOT = Path(__file__).resolve().parents[2]


def make_state(folder: Path, recipe: Train, workers: int) -> State:
    network = model.load(folder, CPU)
    compiled = recipe.packed is not None and recipe.packed.compiled
    network.train(checkpointing=recipe.checkpointing, compiled=compiled)
    optimizer = AdamW(network.parameters(), recipe.optimizer)
    return State(
        network,
        optimizer,
        exchange.make(recipe.exchange, workers, recipe.seed, network.parameters()),
    )


def train(
    rank: int,
    workers: int,
    folder: Path,
    recipe: Train,
    updates: list[list[Document]],
    reverse: bool = False,
) -> dict[str, Any]:
    """Some updates: their records, the final parameters and their root.

    `reverse` gives every rank the share of the rank opposite.
    """
    state = make_state(folder, recipe, workers)
    seat = Rank(workers - 1 - rank if reverse else rank, workers, CPU)
    cut = cut_of(recipe, updates, seat.rank, workers)
    records = list(loop.run(state, recipe, seat, updates, cut, Stopwatch(), lambda: None))
    return {
        "records": records,
        "parameters": {name: p.detach().numpy() for name, p in state.parameters().items()},
        "root": roots.parameter_root(state.parameters()),
        "kept": {name: t.numpy() for name, t in state.exchange.state().items()},
        "report": state.exchange.report(),
    }


def exchange_rounds(
    rank: int, workers: int, recipe: Exchange, rounds: int, shapes: dict[str, tuple[int, ...]],
    dtype: torch.dtype, zero: str = "",
) -> list[dict[str, Any]]:  # fmt: skip
    """For each round: this rank's gradients, what the exchange made of them, and what it kept."""
    talk = exchange.make(recipe, workers, "seed", {})
    seen = []
    for number in range(1, rounds + 1):
        own = draw_gradients(rank, number, shapes, dtype, zero)
        given = {name: gradient.clone() for name, gradient in own.items()}
        before = _kept(talk)
        sent = talk.reduce(given, number)
        seen.append({"own": own, "out": given, "before": before, "after": _kept(talk),
                     "sent_bytes": sent.sent_bytes,
                     "factors": {n: t.clone() for n, t in talk.state().items()}})  # fmt: skip
    return seen


def draw_gradients(
    rank: int, number: int, shapes: dict[str, tuple[int, ...]], dtype: torch.dtype, zero: str
) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1000 * rank + number)
    gradients = {
        name: torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)
        for name, shape in sorted(shapes.items())
    }
    if zero:
        gradients[zero].zero_()
    return gradients


def _kept(talk: exchange.Exchange) -> dict[str, Tensor]:
    assert isinstance(talk, PowerSGD | exchange.DenseExchange)
    prefix = "kept."
    return {
        name[len(prefix) :]: tensor.clone()
        for name, tensor in talk.state().items()
        if name.startswith(prefix)
    }


def launch(argv: list[str]) -> int:
    """`launch` with this process's imports already done. One worker only."""
    return start.main(argv, ROOT / "trainer" / "launch")


def checkpoint_until_killed(out: Path, folder: Path) -> None:
    """Write a candidate, and die in the middle of it."""

    def die() -> None:
        os.kill(os.getpid(), 9)

    tensors = {"a": torch.from_numpy(np.ones(1000, np.float32))}
    checkpoint.write_candidate(out, folder, tensors, die)
    sys.exit("not killed")


def constant_gradient(
    rank: int, workers: int, recipe: Exchange, rounds: int
) -> tuple[Tensor, Tensor]:
    """A gradient that never changes, and the sum of what was sent for it."""
    talk = exchange.make(recipe, workers, "seed", {})
    own = draw_gradients(rank, 1, {"a": (8, 9)}, torch.float64, "")["a"]
    sent = torch.zeros_like(own)
    for number in range(1, rounds + 1):
        given = {"a": own.clone()}
        talk.reduce(given, number)
        sent += given["a"]
    return own, sent


def watch_peers(rank: int, workers: int, dies: int | None) -> list[str]:
    """Whom this rank lost; `dies` ends without a goodbye."""
    noticed = threading.Event()
    lost: list[str] = []

    def notice(peer: str) -> None:
        lost.append(peer)
        noticed.set()

    class Died(Exception):
        pass

    try:
        with peers.watched(rank, workers, "127.0.0.1", CPU, notice):
            if rank == dies:
                raise Died
            if dies is not None:
                assert noticed.wait(20)
                raise Died  # leave as the real thing does: at once
    except Died:
        return lost or ["died"]  # and the process ends, which closes its connections
    return lost
