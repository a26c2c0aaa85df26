"""The task `probe`: a few of the largest updates: whether they fit, and how long they take."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from trainer import loop
from trainer.batches import Document
from trainer.contract import parameter_root
from trainer.cutting import Cut, cut_of
from trainer.exchange import Exchange
from trainer.heartbeat import Heartbeat
from trainer.job import Job
from trainer.later import Later
from trainer.ranks import Rank, join
from trainer.receipts import write_receipt
from trainer.recipe import Probe
from trainer.timers import Stopwatch
from trainer.train import input_files, make_state, read_updates

MEMORY_SHARE = 0.95
"""Of a GPU's memory; what a trial leaves is for pieces that do not fit together later."""


@dataclass
class Trial:
    """What was seen; nothing of it is kept."""

    records: list[loop.UpdateRecord] = field(default_factory=list)
    out_of_memory: bool = False

    def seconds_per_update(self) -> float:
        """The median; of two or more updates the first, which warms up, is left out."""
        seconds = [record.seconds for record in self.records]
        return statistics.median(seconds[1:] or seconds or [0.0])

    def tokens_per_s(self) -> float:
        """This rank's, over the same updates."""
        counted = self.records[1:] or self.records
        seconds = sum(record.seconds for record in counted)
        return sum(record.tokens for record in counted) / seconds if seconds else 0.0


def largest_updates(updates: list[list[Document]], count: int) -> list[list[Document]]:
    """The updates with the most tokens, largest first; ties in the order given."""
    largest = sorted(updates, key=lambda update: -sum(len(document.tokens) for document in update))
    return largest[:count]


def run(job: Job, recipe: Probe) -> None:
    """Write this rank's receipt. Running out of memory is a result, not a failure."""
    files = input_files(job, recipe)
    heart = Heartbeat(job.out / f"heartbeat-{job.rank}.json")
    heart.beat("load", 0, recipe.trial_updates)
    with Later(parameter_root, job.model / "model.safetensors") as model_root, join(job) as rank:
        documents, schedule = read_updates(files, recipe)
        updates = [[documents[place] for place in places] for places in schedule]
        cut = cut_of(recipe, updates, rank.rank, rank.workers)
        largest = largest_updates(updates, recipe.trial_updates)
        load_s = job.beginning.elapsed()
        trial = try_updates(job, recipe, rank, largest, cut, heart)
        body = {
            "microbatch": recipe.microbatch,
            "updates": len(trial.records),
            "seconds_per_update": trial.seconds_per_update(),
            "tokens_per_s": trial.tokens_per_s(),
            "peak_memory_bytes": rank.peak_memory()[0],
            "out_of_memory": trial.out_of_memory,
        }
        write_receipt(
            job,
            rank,
            body,
            inputs=files,
            model_root=model_root.result(),
            timers={"load": load_s},
        )


def try_updates(
    job: Job,
    recipe: Probe,
    rank: Rank,
    updates: list[list[Document]],
    cut: Cut,
    heart: Heartbeat,
) -> Trial:
    """Run updates until they are done or a rank is out of memory; then all stop together."""
    trial = Trial()
    if rank.device.type == "cuda":
        torch.cuda.set_per_process_memory_fraction(MEMORY_SHARE, rank.device)
    state = make_state(job, _without_dense(recipe), rank, heart)
    watch = Stopwatch(rank.synchronise)
    together = _together(state.exchange, rank)
    try:
        for documents in updates:
            inputs = loop.prepare_update(documents, rank, cut)
            record = loop.one_update(state, recipe, rank, inputs, watch, heart.tick, together)
            trial.records.append(record)
            heart.beat("probe", len(trial.records), len(updates), record.loss)
    except torch.OutOfMemoryError:
        trial.out_of_memory = True
    return trial


def _without_dense(recipe: Probe) -> Probe:
    """PowerSGD holds most when it compresses, so that is what is tried."""
    if recipe.exchange.kind != "powersgd":
        return recipe
    return replace(recipe, exchange=replace(recipe.exchange, dense_updates=0))


def _together(talk: Exchange, rank: Rank) -> loop.Attempt:
    """Does a part of an update, then learns from all ranks whether one ran out of memory."""

    def attempt(part: Callable[[], Tensor]) -> Tensor:
        result = None
        with suppress(torch.OutOfMemoryError):
            result = part()
        failed = talk.total(torch.tensor([float(result is None)], device=rank.device))
        if result is None or failed.item() > 0:
            raise torch.OutOfMemoryError("a rank is out of memory")
        return result

    return attempt
