"""Timing loops, their memory, and how far one batch's loss is from FP32."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from bench.ours import OurLoop, Ours
from bench.stock import Stock, StockLoop
from trainer.batches import Document, collate_packed
from trainer.objective import weighted_loss_sum
from trainer.precision import Precision
from trainer.ranks import Rank


class Loop(Protocol):
    """What is timed."""

    def update(self, documents: list[Document]) -> float:
        """One update; its loss."""


@dataclass(frozen=True)
class Timed:
    """A line of the table."""

    name: str
    settings: dict[str, Any]
    seconds: float | None
    """Median of an update, the first left out; None where it failed."""
    first_s: float | None
    """The first update: kernels chosen or compiled."""
    load_s: float | None
    tokens_per_s: float | None
    peak_bytes: int | None
    first_loss: float | None
    why: str = ""
    each_s: tuple[float, ...] = ()
    """Every update in order."""


def time_loop(
    name: str,
    settings: Any,
    make: Callable[[], Loop],
    updates: Sequence[list[Document]],
    rank: Rank,
) -> Timed:
    """Every update once, in order. Running out of memory is a result."""
    forget_memory(rank.device)
    begun = time.monotonic()
    try:
        loop = make()
        rank.synchronise()
        load_s, seconds, losses = time.monotonic() - begun, [], []
        for documents in updates:
            start = time.monotonic()
            losses.append(loop.update(documents))
            rank.synchronise()
            seconds.append(time.monotonic() - start)
    except torch.OutOfMemoryError:
        return Timed(name, asdict(settings), None, None, None, None, None, None, "out of memory")
    median = statistics.median(seconds[1:] or seconds)
    tokens = sum(d.read_length for u in updates for d in u) / len(updates)
    peak = rank.peak_memory()[0]
    return Timed(
        name, asdict(settings), median, seconds[0], load_s, tokens / median, peak, losses[0],
        each_s=tuple(seconds),
    )  # fmt: skip


def forget_memory(device: torch.device) -> None:
    """Let go of what no one holds, and count peaks anew; also first thing in a process."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # also its first use: before it no peak can be reset
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def matmul_rate(device: torch.device, size: int) -> float:
    """bf16 operations a second of a large product of random matrices, median of ten."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds = []
    for _ in range(13):
        begun = time.monotonic()
        a @ b
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.monotonic() - begun)
    return 2 * size**3 / statistics.median(seconds[3:])


@dataclass(frozen=True)
class Distance:
    """Of one batch's loss and gradient from FP32."""

    name: str
    loss: float
    loss_error: float
    """Relative."""
    gradient_error: float
    """L2, relative."""


def distances(
    folder: Path, documents: list[Document], device: torch.device, stock: Sequence[Stock],
    ours: Sequence[Ours],
) -> list[Distance]:  # fmt: skip
    """The stock model without autocast is exact; all others are compared with it."""
    exact_loss, exact = _stock(Stock("exact", autocast=False), folder, documents, device)
    found = []
    for settings in stock:
        loss, gradient = _stock(settings, folder, documents, device)
        found.append(_distance(settings.name, loss, gradient, exact_loss, exact))
    for variant in ours:
        loss, gradient = _ours(variant, folder, documents, device)
        found.append(_distance(variant.name, loss, gradient, exact_loss, exact))
    return found


def _distance(
    name: str, loss: float, gradient: list[Tensor], exact_loss: float, exact: list[Tensor]
) -> Distance:
    squares = [((a - b).double().square().sum(), b.double().square().sum())
               for a, b in zip(gradient, exact, strict=True)]  # fmt: skip
    error, size = (float(sum(part).sqrt()) for part in zip(*squares, strict=True))
    return Distance(name, loss, abs(loss - exact_loss) / exact_loss, error / size)


def _stock(
    settings: Stock, folder: Path, documents: list[Document], device: torch.device
) -> tuple[float, list[Tensor]]:
    loop = StockLoop(settings, folder, device)
    losses = []
    for batch in loop.batches(documents):
        loss = loop.loss(batch.to(device))
        torch.autograd.backward(loss)
        losses.append(loss.item())
    named = dict(loop.model.named_parameters())
    return sum(losses), [named[name].grad for name in sorted(named)]


def _ours(
    settings: Ours, folder: Path, documents: list[Document], device: torch.device
) -> tuple[float, list[Tensor]]:
    loop = OurLoop(settings, folder, Rank(0, 1, device), [documents])
    batch = collate_packed(documents).to(device)
    precision = Precision.of(loop.recipe)
    loss = weighted_loss_sum(loop.network, batch, precision, compiled=settings.compiled)
    torch.autograd.backward(loss)
    named = loop.network.parameters()
    gradients = [named[name].grad for name in sorted(named)]
    return loss.item(), [gradient for gradient in gradients if gradient is not None]
