"""The task `train`: from a seed model to a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer import checkpoint, exchange, loop, model, roots
from trainer.batches import Document, read_documents, read_schedule
from trainer.contract import canonical, parameter_root
from trainer.heartbeat import Heartbeat
from trainer.job import Job
from trainer.later import Later
from trainer.ranks import Rank, join
from trainer.receipts import write_receipt
from trainer.recipe import Train
from trainer.state import State
from trainer.timers import Stopwatch
from trainer.update import AdamW


@dataclass
class Tally:
    """Sums over the whole arm, alike on every rank, and this rank's bytes."""

    updates: int = 0
    documents: int = 0
    tokens: int = 0
    targets: int = 0
    weighted_targets: float = 0.0
    exchange_sent_bytes: int = 0
    exchange_received_bytes: int = 0
    final_loss: float = 0.0

    def add(self, documents: list[Document], record: loop.UpdateRecord) -> None:
        """Count one update."""
        self.updates += 1
        self.documents += len(documents)
        self.tokens += sum(len(document.tokens) for document in documents)
        self.targets += sum(document.target_count for document in documents)
        self.weighted_targets += record.weighted_targets
        self.exchange_sent_bytes += record.sent_bytes
        self.exchange_received_bytes += record.received_bytes
        self.final_loss = record.loss


def input_files(job: Job, recipe: Train) -> dict[str, Path]:
    """The prepared files that training reads, by name. Raises RecipeError when one is missing."""
    names = (f"train.{recipe.corpus}.jsonl", "schedule.json")
    return {name: job.input(name) for name in names}


def read_updates(files: dict[str, Path], recipe: Train) -> tuple[list[Document], list[list[int]]]:
    """The corpus, and for every update its lines."""
    corpus, schedule = files.values()
    documents = read_documents(corpus, weighted=True)
    return documents, read_schedule(schedule, len(documents), recipe.updates)


def make_state(job: Job, recipe: Train, rank: Rank, heart: Heartbeat) -> State:
    """The state before the first update."""
    torch.manual_seed(int.from_bytes(recipe.seed.encode()) % 2**63)
    network = model.load(job.model, rank.device, heart.tick)
    network.train(checkpointing=recipe.checkpointing)
    return State(
        network,
        AdamW(network.parameters(), recipe.optimizer),
        exchange.make(recipe.exchange, rank.workers, recipe.seed, network.parameters()),
    )


def run(job: Job, recipe: Train) -> None:
    """Train, write the candidate (rank 0) and this rank's journal and receipt."""
    files = input_files(job, recipe)
    heart = Heartbeat(job.out / f"heartbeat-{job.rank}.json")
    heart.beat("load", 0, recipe.updates)
    with Later(parameter_root, job.model / "model.safetensors") as model_root, join(job) as rank:
        documents, schedule = read_updates(files, recipe)
        state = make_state(job, recipe, rank, heart)
        watch = Stopwatch(rank.synchronise)
        load_s = job.beginning.elapsed()
        watch.mark("loop")
        tally = _updates(job, recipe, rank, state, documents, schedule, watch, heart)
        watch.mark("updated")
        heart.beat("save", recipe.updates, recipe.updates, tally.final_loss)
        if rank.rank == 0:
            checkpoint.write_candidate(job.out, job.model, state.parameters(), heart.tick)
        if recipe.preserve == "full-state":
            checkpoint.write_state(job.out, state, rank.rank, heart.tick)
        watch.mark("saved")
        root = roots.parameter_root(state.parameters(), progress=heart.tick)
        watch.mark("digested")
        write_receipt(
            job,
            rank,
            _body(tally, state, root),
            inputs=files,
            model_root=model_root.result(),
            timers=_timers(watch, load_s),
        )
        heart.beat("done", recipe.updates, recipe.updates, tally.final_loss)


def _updates(
    job: Job,
    recipe: Train,
    rank: Rank,
    state: State,
    documents: list[Document],
    schedule: list[list[int]],
    watch: Stopwatch,
    heart: Heartbeat,
) -> Tally:
    """Every update, each with a line in losses-R.jsonl as soon as it is done."""
    tally = Tally()
    chosen = [[documents[place] for place in places] for places in schedule]
    watch.mark("first")
    with open(job.out / f"losses-{rank.rank}.jsonl", "wb", buffering=0) as journal:
        records = loop.run(state, recipe, rank, iter(chosen), watch, heart.tick)
        for used, record in zip(chosen, records, strict=True):
            journal.write(canonical(record.line()) + b"\n")
            tally.add(used, record)
            speed = loop.tokens_per_second(record)
            heart.beat("train", record.update, recipe.updates, record.loss, speed)
    return tally


def _body(tally: Tally, state: State, root: str) -> dict[str, Any]:
    parameters = sum(parameter.numel() for parameter in state.parameters().values())
    body = {**vars(tally), "parameter_root": root, "parameters": parameters}
    return body | state.exchange.report()


def _timers(watch: Stopwatch, load_s: float) -> dict[str, float]:
    return {
        **watch.update_times(),
        "load": load_s,
        "active": watch.between("first", "updated"),
        "active_plus_checkpoint": watch.between("first", "saved"),
        "loop": watch.between("loop", "digested"),
    }
