"""The training loop: accumulate, exchange, clip, update."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from trainer.batches import Batch, Document, share, weighted_targets
from trainer.cutting import Cut
from trainer.objective import weighted_loss_sum
from trainer.precision import Precision
from trainer.ranks import Rank
from trainer.recipe import Train
from trainer.schedule import lr_share
from trainer.state import State
from trainer.timers import Stopwatch
from trainer.update import clip

A = TypeVar("A")
B = TypeVar("B")
Attempt = Callable[[Callable[[], Tensor]], Tensor]


def at_once(part: Callable[[], Tensor]) -> Tensor:
    """Just does it."""
    return part()


@dataclass(frozen=True)
class UpdateInputs:
    """One update's documents, as this rank sees them."""

    documents: list[Document]
    """All workers'."""
    batches: list[Batch]
    """This rank's microbatches, on the host."""
    tokens: int
    """This rank's."""
    weighted_targets: float
    """All workers': the objective's denominator."""


@dataclass(frozen=True)
class UpdateRecord:
    """A line of losses-R.jsonl. Seconds, with the device's queue empty at both ends."""

    update: int
    loss: float
    """Global weighted mean, nats."""
    local_loss_sum: float
    """This rank's part of the numerator."""
    weighted_targets: float
    lr: float
    grad_norm: float
    """Of the global gradient, before clipping."""
    seconds: float
    exchange_seconds: float
    sent_bytes: int
    """Counted by the exchange, this rank."""
    received_bytes: int
    tokens: int
    """This rank's."""

    def line(self) -> dict[str, object]:
        """As the contract has it."""
        row = asdict(self)
        del row["received_bytes"]
        return row


def prepare_update(documents: list[Document], rank: Rank, cut: Cut) -> UpdateInputs:
    """This rank's part of an update."""
    own = share(documents, rank.rank, rank.workers)
    return UpdateInputs(
        documents,
        cut(own),
        sum(len(document.tokens) for document in own),
        weighted_targets(documents),
    )


def run(
    state: State,
    recipe: Train,
    rank: Rank,
    updates: Iterable[list[Document]],
    cut: Cut,
    watch: Stopwatch,
    tick: Callable[[], None],
) -> Iterator[UpdateRecord]:
    """Do every update there is, and give its record. Changes `state`.

    `cut` makes microbatches of a rank's share, while the update before is done. `tick` is called
    between microbatches.
    """
    for inputs in ahead(partial(prepare_update, rank=rank, cut=cut), updates):
        yield one_update(state, recipe, rank, inputs, watch, tick)


def ahead(make: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """`make` of every item, each worked out on a thread while the one before is used."""
    with ThreadPoolExecutor(1) as thread:
        coming: Future[B] | None = None
        for item in items:
            ready, coming = coming, thread.submit(make, item)
            if ready is not None:
                yield ready.result()
        if coming is not None:
            yield coming.result()


def one_update(
    state: State,
    recipe: Train,
    rank: Rank,
    inputs: UpdateInputs,
    watch: Stopwatch,
    tick: Callable[[], None],
    attempt: Attempt = at_once,
) -> UpdateRecord:
    """One update. Changes `state`.

    `attempt` runs the two parts that a rank does on its own; between them ranks talk.
    """
    begun = watch.now()
    loss_sum = attempt(lambda: accumulate(state, recipe, rank, inputs, tick))
    accumulated = watch.now()
    gradients = state.gradients()
    sent = state.exchange.reduce(gradients, state.update + 1)
    loss = state.exchange.total(loss_sum) / inputs.weighted_targets
    exchanged = watch.now()
    norm = attempt(lambda: change_parameters(state, recipe, gradients))
    changed = watch.now()
    sent += state.exchange.settle(state.parameters(), state.update)
    ended = watch.now()
    watch.updates_s.append(ended - begun)
    return UpdateRecord(
        update=state.update,
        loss=loss.item(),
        local_loss_sum=loss_sum.item(),
        weighted_targets=inputs.weighted_targets,
        lr=lr_of(recipe, state.update),
        grad_norm=norm.item(),
        seconds=ended - begun,
        exchange_seconds=exchanged - accumulated + ended - changed,
        sent_bytes=sent.sent_bytes,
        received_bytes=sent.received_bytes,
        tokens=inputs.tokens,
    )


def accumulate(
    state: State, recipe: Train, rank: Rank, inputs: UpdateInputs, tick: Callable[[], None]
) -> Tensor:
    """Add every microbatch's gradient, already divided by the global denominator.

    Returns this rank's sum of weighted losses: a float64 scalar on the device, no gradient.
    """
    loss_sum = torch.zeros((), dtype=torch.float64, device=rank.device)
    precision = Precision.of(recipe)
    compiled = recipe.packed is not None and recipe.packed.compiled
    for batch in inputs.batches:
        part = weighted_loss_sum(state.network, batch.to(rank.device), precision, compiled=compiled)
        torch.autograd.backward(part / inputs.weighted_targets)
        loss_sum += part.detach()
        tick()
    return loss_sum


def change_parameters(state: State, recipe: Train, gradients: Mapping[str, Tensor]) -> Tensor:
    """Clip the global gradients and step. Returns their norm before clipping."""
    norm = clip(gradients, recipe.clip_norm)
    state.update += 1
    state.optimizer.step(lr_of(recipe, state.update), state.update)
    return norm


def lr_of(recipe: Train, update: int) -> float:
    """The learning rate of an update, from 1."""
    return recipe.optimizer.lr * lr_share(recipe.schedule, update, recipe.updates)


def tokens_per_second(record: UpdateRecord) -> float:
    """This rank's, over the timed part of the update."""
    return record.tokens / max(record.seconds, time.get_clock_info("monotonic").resolution)
