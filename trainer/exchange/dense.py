"""Every gradient summed over ranks in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.exchange.protocol import Sent, all_reduce_bytes

_SMALL_BYTES = 4 * 1024 * 1024
"""Smaller tensors travel together: one message instead of hundreds."""


class DenseExchange:
    """The baseline that other exchanges are compared with."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def reduce(self, gradients: Mapping[str, Tensor], update: int) -> Sent:
        """Mutates `gradients` into their sums over ranks, in their own precision."""
        return sum_tensors([gradients[name] for name in sorted(gradients)], self._workers)

    def settle(self, parameters: Mapping[str, Tensor], update: int) -> Sent:
        """Nothing is left to agree on."""
        return Sent()

    def total(self, values: Tensor) -> Tensor:
        """The sum over ranks of a few numbers."""
        return total(values)

    def state(self) -> dict[str, Tensor]:
        """Nothing is kept."""
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Nothing was kept."""

    def report(self) -> dict[str, object]:
        """Nothing of its own."""
        return {}


def total(values: Tensor) -> Tensor:
    """The sum over ranks of a few numbers; the argument is left alone."""
    summed = values.clone()
    dist.all_reduce(summed)
    return summed


def sum_tensors(tensors: Sequence[Tensor], workers: int, travel: torch.dtype | None = None) -> Sent:
    """Sum each tensor over ranks in place; the order must be the same on every rank.

    Large ones are reduced where they lie, small ones through one flat copy. With `travel` large
    ones are rounded to that type, sent and summed in it, one at a time.
    """
    if travel is not None:
        narrow = [tensor for tensor in tensors if _bytes(tensor) >= _SMALL_BYTES]
        rest = [tensor for tensor in tensors if _bytes(tensor) < _SMALL_BYTES]
        sent = sum_tensors(rest, workers) if rest else Sent()
        for tensor in narrow:
            copy = tensor.to(travel)
            dist.all_reduce(copy)
            tensor.copy_(copy)
            sent += all_reduce_bytes(_bytes(copy), workers)
        return sent
    small = [tensor for tensor in tensors if _bytes(tensor) < _SMALL_BYTES]
    large = [tensor for tensor in tensors if _bytes(tensor) >= _SMALL_BYTES]
    waiting: list[Any] = [dist.all_reduce(tensor, async_op=True) for tensor in large]
    if small:
        flat = torch.cat([tensor.reshape(-1) for tensor in small])
        dist.all_reduce(flat)
        pieces = torch.split(flat, [tensor.numel() for tensor in small])
        for tensor, piece in zip(small, pieces, strict=True):
            tensor.copy_(piece.view_as(tensor))
    for handle in waiting:
        handle.wait()
    return all_reduce_bytes(sum(map(_bytes, tensors)), workers)


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
