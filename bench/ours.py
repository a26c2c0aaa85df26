"""The trainer's own loop, with the settings that a plan has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from trainer import exchange, loop, model
from trainer.batches import Document
from trainer.cutting import cut_of
from trainer.model import CausalModel
from trainer.ranks import Rank
from trainer.recipe import Exchange, Optimizer, Packed, Schedule, Train
from trainer.state import State
from trainer.timers import Stopwatch
from trainer.update import AdamW

ALONE = Exchange("none")
POWERSGD = Exchange(
    "powersgd", rank=32, error_feedback=True, residual="averaged", dense_updates=0,
    min_compression_rate=2, epsilon=1e-8,
)  # fmt: skip


@dataclass(frozen=True)
class Ours:
    """A name for the table, and what a plan would say."""

    name: str
    tokens: int
    residual: str = "fp32"
    head: str = "wide"
    checkpointing: bool = False
    compiled: bool = True
    exchange: Exchange = ALONE

    def recipe(self, device: torch.device, updates: int) -> Train:
        """As the trainer reads it."""
        return Train(
            task="train", device=device.type, threads=None, seed="bench", arm="bench",
            corpus="bench", updates=updates, microbatch=self.tokens,
            optimizer=Optimizer(3e-5, 0.9, 0.999, 1e-8, 0.01),
            schedule=Schedule("constant", 0, 0.0), clip_norm=1.0, autocast="bf16",
            checkpointing=self.checkpointing, exchange=self.exchange, preserve="weights",
            packed=Packed(self.compiled, self.residual, self.head),
        )  # fmt: skip


def variants(tokens: int) -> tuple[Ours, ...]:
    """One change at a time from the first, which is what the plans use."""
    base = Ours("ours: FP32 residual, wide head", tokens)
    return (
        base,
        replace(base, name="ours: BF16 residual, wide head", residual="bf16"),
        replace(base, name="ours: FP32 residual, rounded head", head="rounded"),
        replace(base, name="ours: FP32 residual, FP32 head", head="fp32"),
        replace(base, name="ours: checkpointing", checkpointing=True),
        replace(base, name="ours: not compiled", compiled=False),
        replace(base, name="ours: half the tokens a row", tokens=max(1024, tokens // 2)),
    )


class OurLoop:
    """A state and what feeds it."""

    def __init__(
        self, settings: Ours, folder: Path, rank: Rank, updates: Sequence[list[Document]]
    ) -> None:
        self.settings = settings
        self.rank = rank
        if settings.compiled:
            torch.compiler.reset()  # another row length would else be compiled for any length
        self.recipe = settings.recipe(rank.device, len(updates))
        self.network: CausalModel = model.load(folder, rank.device)
        self.network.train(checkpointing=settings.checkpointing, compiled=settings.compiled)
        self.state = State(
            self.network,
            AdamW(self.network.parameters(), self.recipe.optimizer),
            exchange.make(self.recipe.exchange, rank.workers, "bench", self.network.parameters()),
        )
        self.cut = cut_of(self.recipe, updates, rank.rank, rank.workers)
        self.records: list[loop.UpdateRecord] = []

    def update(self, documents: list[Document]) -> float:
        """One update; its weighted mean loss."""
        inputs = loop.prepare_update(documents, self.rank, self.cut)
        watch = Stopwatch(self.rank.synchronise)
        record = loop.one_update(self.state, self.recipe, self.rank, inputs, watch, lambda: None)
        self.records.append(record)
        return record.loss
