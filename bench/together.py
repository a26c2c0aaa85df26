"""Several ranks in one process, so that an exchange's effect on learning needs one GPU.

Every rank's exchange runs on a thread of its own, and `all_reduce` is a sum over the threads in the
order of ranks, in the tensors' own precision: for two ranks what NCCL and gloo compute, bit for
bit. Forward and backward passes go one rank after another through the one network, since all
ranks hold the same parameters between two updates.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TypeVar
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from trainer import loop
from trainer.batches import Document
from trainer.cutting import Cut
from trainer.exchange import Exchange, Sent
from trainer.ranks import Rank
from trainer.recipe import Train
from trainer.state import State

T = TypeVar("T")
_LIMIT_S = 600.0


class _Done:
    """What an asynchronous sum gives back."""

    def wait(self) -> None:
        """It is done already."""


class Threads:
    """Ranks of one group as threads."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._barrier = threading.Barrier(workers, timeout=_LIMIT_S)
        self._own = threading.local()
        self._given: list[Tensor] = [torch.empty(0)] * workers
        self._sum = torch.empty(0)

    def each(self, part: Callable[[int], T]) -> list[T]:
        """`part(rank)` on every rank at once; inside, `dist.all_reduce` sums over them."""

        def run(rank: int) -> T:
            self._own.rank = rank
            try:
                return part(rank)
            except BaseException:
                self._barrier.abort()
                raise

        with patch.object(dist, "all_reduce", self._all_reduce), ThreadPoolExecutor() as threads:
            return list(threads.map(run, range(self._workers)))

    def _all_reduce(self, tensor: Tensor, async_op: bool = False) -> _Done | None:
        self._given[self._own.rank] = tensor
        if self._barrier.wait() == 0:
            self._sum = reduce(torch.add, self._given)
        self._barrier.wait()
        tensor.copy_(self._sum)
        self._barrier.wait()
        return _Done() if async_op else None


class Ranks:
    """An arm's ranks: one state, an exchange for each."""

    def __init__(
        self, state: State, recipe: Train, exchanges: Sequence[Exchange], cuts: Sequence[Cut],
        device: torch.device,
    ) -> None:  # fmt: skip
        self.state, self.recipe = state, recipe
        self._exchanges, self._cuts, self._device = exchanges, cuts, device
        self._threads = Threads(len(exchanges))

    def update(self, documents: list[Document]) -> tuple[float, Sent]:
        """One update: its global loss, and what one rank sent. Changes the state."""
        workers = len(self._exchanges)
        gradients, losses, weighted = [], [], 1.0
        for number, cut in enumerate(self._cuts):
            rank = Rank(number, workers, self._device)
            inputs = loop.prepare_update(documents, rank, cut)
            weighted = inputs.weighted_targets
            losses.append(loop.accumulate(self.state, self.recipe, rank, inputs, lambda: None))
            gradients.append(self.state.gradients())
            for parameter in self.state.parameters().values():
                parameter.grad = None
        update = self.state.update + 1
        sent = self._threads.each(
            lambda rank: self._exchanges[rank].reduce(gradients[rank], update)
        )
        for name, parameter in self.state.parameters().items():
            parameter.grad = gradients[0][name]
        loop.change_parameters(self.state, self.recipe, gradients[0])
        return float(sum(losses[1:], losses[0])) / weighted, sent[0]
