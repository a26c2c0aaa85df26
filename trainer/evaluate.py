"""The task `evaluate`: answers to cases, and losses on retention documents. It scores nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer import model
from trainer.batches import read_documents
from trainer.contract import parameter_root, read_lines, write_lines
from trainer.errors import TrainerError
from trainer.generate import generate
from trainer.heartbeat import Heartbeat
from trainer.job import Job
from trainer.later import Later
from trainer.ranks import Rank, join
from trainer.receipts import write_receipt
from trainer.recipe import Evaluate
from trainer.retention import document_losses
from trainer.timers import Stopwatch


def run(job: Job, recipe: Evaluate) -> None:
    """Write answers, losses and the receipt."""
    files = {f"{role}.cases.jsonl": job.input(f"{role}.cases.jsonl") for role in recipe.cases}
    probes = {
        f"retention.{name}.jsonl": job.input(f"retention.{name}.jsonl") for name in recipe.retention
    }
    heart = Heartbeat(job.out / "heartbeat-0.json")
    heart.beat("load")
    with Later(parameter_root, job.model / "model.safetensors") as model_root, join(job) as rank:
        network = model.load(job.model, rank.device, heart.tick)
        load_s = job.beginning.elapsed()
        task = _Evaluation(job, recipe, rank, network, heart)
        body = {
            "roles": {role: task.answer(role) for role in recipe.cases},
            "probes": {name: task.lose(name) for name in recipe.retention},
        }
        write_receipt(
            job,
            rank,
            body,
            inputs=files | probes,
            model_root=model_root.result(),
            timers={"load": load_s},
        )
        heart.beat("done")


class _Evaluation:
    """One model in front of its files."""

    def __init__(
        self,
        job: Job,
        recipe: Evaluate,
        rank: Rank,
        network: model.CausalModel,
        heart: Heartbeat,
    ) -> None:
        self._job = job
        self._recipe = recipe
        self._watch = Stopwatch(rank.synchronise)
        self._network = network
        self._heart = heart

    def answer(self, role: str) -> dict[str, Any]:
        """Write answers-ROLE.jsonl; its line in the receipt."""
        cases = read_cases(self._job.input(f"{role}.cases.jsonl"))
        begun = self._watch.now()
        answers = generate(
            self._network,
            [tokens for _, tokens in cases],
            max_new_tokens=self._recipe.max_new_tokens,
            batch=self._recipe.batch,
            end_tokens=self._recipe.end_tokens,
            autocast=self._recipe.autocast,
            progress=lambda done: self._heart.beat(f"answer {role}", done, len(cases)),
            tick=self._heart.tick,
        )
        seconds = self._watch.now() - begun
        rows = [
            {"id": case, "tokens": answer.tokens, "stopped": answer.stopped}
            for (case, _), answer in zip(cases, answers, strict=True)
        ]
        write_lines(self._job.out / f"answers-{role}.jsonl", rows)
        tokens = sum(len(answer.tokens) for answer in answers)
        return {"cases": len(cases), "generated_tokens": tokens, "seconds": seconds}

    def lose(self, name: str) -> dict[str, Any]:
        """Write retention-NAME.jsonl; its line in the receipt."""
        path = self._job.input(f"retention.{name}.jsonl")
        documents = read_documents(path, weighted=False)
        if not documents:
            raise TrainerError(f"{path} holds no document")
        begun = self._watch.now()
        losses = document_losses(
            self._network,
            documents,
            batch=self._recipe.batch,
            autocast=self._recipe.autocast,
            progress=lambda done: self._heart.beat(f"retention {name}", done, len(documents)),
        )
        seconds = self._watch.now() - begun
        write_lines(self._job.out / f"retention-{name}.jsonl", [vars(loss) for loss in losses])
        mean = sum(loss.loss for loss in losses) / len(losses)
        return {"documents": len(documents), "mean_loss": mean, "seconds": seconds}


def read_cases(path: Path) -> list[tuple[str, list[int]]]:
    """(id, prompt) of every case. Raises TrainerError on one that is malformed."""
    cases = []
    for number, row in enumerate(read_lines(path), start=1):
        good = isinstance(row, dict) and set(row) == {"id", "tokens"} and row["tokens"]
        if not good or not all(type(token) is int and token >= 0 for token in row["tokens"]):
            raise TrainerError(f"{path} line {number} is not a case of id and tokens")
        cases.append((str(row["id"]), list(row["tokens"])))
    return cases
