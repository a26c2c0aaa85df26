"""The task `train`: from a seed model to a candidate."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from trainer import checkpoint, exchange, loop, model, roots
from trainer.batches import Document, read_documents, read_schedule
from trainer.contract import canonical, parameter_root, parse
from trainer.cutting import cut_of
from trainer.heartbeat import Heartbeat
from trainer.job import Job
from trainer.later import Later
from trainer.progress import Tally, identity_of
from trainer.ranks import Rank, join
from trainer.receipts import write_receipt
from trainer.recipe import Train
from trainer.saving import Saver, newest_common
from trainer.state import State
from trainer.timers import Stopwatch
from trainer.update import AdamW


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
    compiled = recipe.packed is not None and recipe.packed.compiled
    if recipe.packed is not None and rank.device.type == "cuda":
        # Only when others are refused does packed attention take its deterministic backward pass.
        torch.set_deterministic_debug_mode("error")
    network.train(checkpointing=recipe.checkpointing, compiled=compiled)
    return State(
        network,
        AdamW(network.parameters(), recipe.optimizer),
        exchange.make(recipe.exchange, rank.workers, recipe.seed, network.parameters()),
    )


@dataclass
class Arm:
    """An arm in training."""

    job: Job
    recipe: Train
    rank: Rank
    heart: Heartbeat
    watch: Stopwatch
    state: State
    saver: Saver
    tally: Tally = field(default_factory=Tally)
    losses: list[bytes] = field(default_factory=list)
    """Lines of losses-R.jsonl."""
    earlier_s: float = 0.0
    """Active seconds of earlier attempts that this one goes on from."""
    resumed_from: int | None = None

    def go_on(self) -> None:
        """Take up the newest checkpoint of earlier attempts that all ranks hold, if any."""
        name = self.saver.folder.name
        folders = [out / name for out in self.job.arguments.resume]
        if not folders:
            return
        self.heart.beat("resume", 0, self.recipe.updates)
        found = newest_common(
            folders, self.state, self.rank, self.recipe.updates, self.saver.identity
        )
        if found is None:
            return
        progress = checkpoint.read(found, self.state)
        self.tally = Tally(**progress.tally)
        self.losses = progress.losses.splitlines(keepends=True)
        self.watch.updates_s += [parse(line)["seconds"] for line in self.losses]
        self.earlier_s, self.resumed_from = progress.active_s, progress.update

    def active_s(self, until: float) -> float:
        """Seconds from the first update on, earlier attempts' up to their checkpoint included."""
        return self.earlier_s + until - self.watch.moments_s["first"]

    def save_if_due(self) -> None:
        """Between two updates."""
        if self.saver.due(self.state, self.recipe.updates):
            self.saver.save(self.state, self.progress())

    def progress(self) -> checkpoint.Progress:
        """As a checkpoint holds it."""
        return checkpoint.Progress(
            self.state.update,
            vars(self.tally).copy(),
            self.active_s(self.watch.now()),
            b"".join(self.losses),
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
        identity = identity_of(job, files, model_root)
        folder = job.out / f"checkpoint-{rank.rank}"
        saver = Saver(folder, recipe.checkpoint_updates, identity, rank, heart.tick)
        arm = Arm(job, recipe, rank, heart, watch, state, saver)
        arm.go_on()
        load_s = job.beginning.elapsed()
        watch.mark("loop")
        _updates(arm, documents, schedule)
        watch.mark("updated")
        heart.beat("save", recipe.updates, recipe.updates, arm.tally.final_loss)
        _keep(arm)
        watch.mark("saved")
        root = roots.parameter_root(state.parameters(), progress=heart.tick)
        watch.mark("digested")
        write_receipt(
            job,
            rank,
            _body(arm, root),
            inputs=files,
            model_root=model_root.result(),
            timers=_timers(arm, load_s),
        )
        saver.forget(state)
        heart.beat("done", recipe.updates, recipe.updates, arm.tally.final_loss)


def _updates(arm: Arm, documents: list[Document], schedule: list[list[int]]) -> None:
    """Every update, each with a line in losses-R.jsonl as soon as it is done."""
    recipe, rank, heart = arm.recipe, arm.rank, arm.heart
    chosen = [[documents[place] for place in places] for places in schedule]
    cut = cut_of(recipe, chosen, rank.rank, rank.workers)
    left = chosen[arm.state.update :]
    arm.watch.mark("first")
    with open(arm.job.out / f"losses-{rank.rank}.jsonl", "wb", buffering=0) as journal:
        journal.write(b"".join(arm.losses))
        records = loop.run(arm.state, recipe, rank, left, cut, arm.watch, heart.tick)
        for used, record in zip(left, records, strict=True):
            arm.losses.append(canonical(record.line()) + b"\n")
            journal.write(arm.losses[-1])
            arm.tally.add(used, record)
            speed = loop.tokens_per_second(record)
            heart.beat("train", record.update, recipe.updates, record.loss, speed)
            arm.save_if_due()


def _keep(arm: Arm) -> None:
    """What outlasts the arm."""
    job, state, rank = arm.job, arm.state, arm.rank.rank
    arm.saver.settle()
    if rank == 0:
        checkpoint.write_candidate(job.out, job.model, state.parameters(), arm.heart.tick)
    if arm.recipe.preserve == "full-state":
        checkpoint.write(
            job.out / f"state-{rank}", state.tensors(), arm.saver.identity(), arm.progress(),
            arm.heart.tick,
        )  # fmt: skip


def _body(arm: Arm, root: str) -> dict[str, Any]:
    parameters = sum(parameter.numel() for parameter in arm.state.parameters().values())
    body = {**vars(arm.tally), "parameter_root": root, "parameters": parameters}
    if arm.recipe.checkpoint_updates is not None:
        body |= {"checkpoints": arm.saver.report(), "resumed_from": arm.resumed_from}
    return body | arm.state.exchange.report()


def _timers(arm: Arm, load_s: float) -> dict[str, float]:
    moments = arm.watch.moments_s
    return {
        **arm.watch.update_times(),
        "load": load_s,
        "active": arm.active_s(moments["updated"]),
        "active_plus_checkpoint": arm.active_s(moments["saved"]),
        "loop": arm.watch.between("loop", "digested"),
    }
