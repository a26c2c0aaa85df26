"""What an arm has done so far, and what makes it this arm and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainer.batches import Document
from trainer.checkpoint import Identity
from trainer.contract import hash_file, read_json, tree_hash
from trainer.job import Job
from trainer.later import Later
from trainer.loop import UpdateRecord


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

    def add(self, documents: list[Document], record: UpdateRecord) -> None:
        """Count one update."""
        self.updates += 1
        self.documents += len(documents)
        self.tokens += sum(len(document.tokens) for document in documents)
        self.targets += sum(document.target_count for document in documents)
        self.weighted_targets += record.weighted_targets
        self.exchange_sent_bytes += record.sent_bytes
        self.exchange_received_bytes += record.received_bytes
        self.final_loss = record.loss


def identity_of(
    job: Job, files: Mapping[str, Path], model_root: Later[str]
) -> Callable[[], Identity]:
    """Recipe, source and inputs as they are now; the model's root is waited for when asked."""
    recipe = read_json(job.arguments.recipe)
    source = tree_hash(job.source)
    inputs = {name: hash_file(path)[0] for name, path in files.items()}

    @cache
    def identity() -> Identity:
        return Identity(recipe, source, inputs, model_root.result(), job.rank, job.workers)

    return identity
