"""Local windows against a plain simulation of all workers in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.numerics import tiny, work
from tests.numerics.ranks_pool import run_ranks
from trainer import loop
from trainer.batches import Document
from trainer.cutting import cut_of
from trainer.ranks import Rank
from trainer.recipe import Train
from trainer.state import State

WINDOW, UPDATES, WORKERS = 3, 6, 2


def updates() -> list[list[Document]]:
    documents = tiny.draw_documents(8 * UPDATES, seed=21)
    return [documents[start : start + 8] for start in range(0, len(documents), 8)]


def windows(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "local-windows",
        "window": WINDOW,
        "outer_lr": 0.7,
        "outer_momentum": 0.9,
    } | changes


def simulated(folder: Path, recipe: Train) -> dict[str, torch.Tensor]:
    """Workers one after another, each with an optimizer of its own; torch's SGD outside."""
    alone = tiny.train(updates=UPDATES)
    workers = [work.make_state(folder, alone, 1) for _ in range(WORKERS)]
    outer = {name: p.detach().clone() for name, p in workers[0].parameters().items()}
    assert recipe.exchange.outer_lr is not None and recipe.exchange.outer_momentum is not None
    optimizer = torch.optim.SGD(
        list(outer.values()),
        lr=recipe.exchange.outer_lr,
        momentum=recipe.exchange.outer_momentum,
        nesterov=recipe.exchange.outer_momentum > 0,
    )
    for number, documents in enumerate(updates(), start=1):
        for rank, state in enumerate(workers):
            step_alone(state, alone, rank, documents)
        if number % WINDOW == 0:
            for name, begun in outer.items():
                ends = [state.parameters()[name].detach() for state in workers]
                begun.grad = begun - torch.stack(ends).mean(0)
            optimizer.step()
            for state in workers:
                for name, parameter in state.parameters().items():
                    parameter.data.copy_(outer[name])
    return outer


def step_alone(state: State, recipe: Train, rank: int, documents: list[Document]) -> None:
    """One worker's step: its documents' share of the loss, times the workers."""
    cut = cut_of(recipe, [documents], rank, WORKERS)
    inputs = loop.prepare_update(documents, Rank(rank, WORKERS, work.CPU), cut)
    loop.accumulate(state, recipe, Rank(0, 1, work.CPU), inputs, lambda: None)
    gradients = state.gradients()
    for gradient in gradients.values():
        gradient.mul_(WORKERS)
    loop.change_parameters(state, recipe, gradients)


@pytest.mark.parametrize("changes", [{}, {"outer_lr": 1.0, "outer_momentum": 0.0}])
def test_workers_end_where_a_simulation_ends(changes: dict[str, Any], model_folder: Path) -> None:
    recipe = tiny.train(updates=UPDATES, exchange=windows(**changes))
    ranks = run_ranks(work.train, WORKERS, model_folder, recipe, updates())
    assert ranks[0]["root"] == ranks[1]["root"]
    expected = simulated(model_folder, recipe)
    for name, found in ranks[0]["parameters"].items():
        assert torch.allclose(torch.from_numpy(found), expected[name], rtol=1e-5, atol=1e-6), name


def test_bytes_are_sent_at_the_end_of_a_window_and_counted(model_folder: Path) -> None:
    recipe = tiny.train(updates=UPDATES, exchange=windows())
    ranks = run_ranks(work.train, WORKERS, model_folder, recipe, updates())
    parameters = sum(each.size for each in ranks[0]["parameters"].values())
    sent = [record.sent_bytes for record in ranks[1]["records"]]
    assert sent == [0, 0, 4 * parameters] * 2
    assert [each["update"] for each in ranks[0]["report"]["outer_updates"]] == [3, 6]
    assert all(each["norm"] > 0 for each in ranks[0]["report"]["outer_updates"])
    losses = [[record.loss for record in rank["records"]] for rank in ranks]
    assert losses[0] == losses[1], "the reported loss is that of all workers"


def test_inside_a_window_workers_are_apart(model_folder: Path) -> None:
    recipe = tiny.train(updates=UPDATES, exchange=windows())
    ranks = run_ranks(work.train, WORKERS, model_folder, recipe, updates()[:2])
    assert ranks[0]["root"] != ranks[1]["root"]


def test_a_window_that_does_not_end_with_the_updates_is_refused(
    arguments: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainer.start import main

    recipe = tiny.train_recipe(updates=4, exchange=windows(window=3))
    assert main(arguments(recipe, nodes=2), work.ROOT / "trainer" / "launch") == 2
    assert "4 updates do not end with a window of 3" in capsys.readouterr().err
