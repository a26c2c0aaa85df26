"""Prepared documents: reading them, a rank's share of an update, padded microbatches.

Shape suffixes: B documents, T positions, N target positions of the microbatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.contract import read_json, read_lines
from trainer.errors import TrainerError


@dataclass(frozen=True)
class Document:
    """One line of a corpus or of a retention file."""

    id: str
    tokens: tuple[int, ...]
    targets: tuple[tuple[int, int], ...]
    """Half-open spans of predicted positions."""
    weight: float

    @property
    def target_count(self) -> int:
        """How many positions are predicted."""
        return sum(end - start for start, end in self.targets)


@dataclass(frozen=True)
class Batch:
    """Documents that go through the network at once."""

    ids_BT: Tensor
    """int64, right-padded with 0. A document is cut before its last target, which it ends with."""
    place_N: Tensor
    """int64: where in the flattened B×T hidden states each target is predicted from."""
    target_N: Tensor
    """int64: the token to predict."""
    weight_N: Tensor
    """float32: its document's weight."""
    document_N: Tensor
    """int64: its document's place in the batch."""

    def to(self, device: torch.device) -> Batch:
        """The batch on a device; copying to a GPU is queued, not waited for."""
        if device.type == "cpu":
            return self
        return Batch(
            *(
                tensor.pin_memory().to(device, non_blocking=True)
                for tensor in (
                    self.ids_BT,
                    self.place_N,
                    self.target_N,
                    self.weight_N,
                    self.document_N,
                )
            )
        )


def read_documents(path: Path, *, weighted: bool) -> list[Document]:
    """Every document of a file. Raises TrainerError or ContractError on one that is malformed."""
    return [
        _document(row, f"{path} line {number}", weighted)
        for number, row in enumerate(read_lines(path), start=1)
    ]


def _document(row: Any, where: str, weighted: bool) -> Document:
    try:
        document = Document(
            id=row["id"],
            tokens=tuple(row["tokens"]),
            targets=tuple((start, end) for start, end in row["targets"]),
            weight=float(row["weight"]) if weighted else 1.0,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TrainerError(f"{where} is not a document: {type(error).__name__} {error}") from None
    if not all(type(token) is int and token >= 0 for token in document.tokens):
        raise TrainerError(f"{where} holds a token that is not an id")
    spans_fit = all(0 < start < end <= len(document.tokens) for start, end in document.targets)
    if not spans_fit or not document.targets:
        raise TrainerError(f"{where} has target spans that are empty or outside its tokens")
    if not document.weight > 0:
        raise TrainerError(f"{where} has the weight {document.weight}, which is not positive")
    return document


def read_schedule(path: Path, documents: int, updates: int) -> list[list[int]]:
    """The lines of the corpus for each of the first `updates` updates. Raises TrainerError."""
    value = read_json(path)
    schedule = value.get("updates") if isinstance(value, dict) else None
    if not isinstance(schedule, list) or len(schedule) < updates:
        raise TrainerError(f"{path} does not hold {updates} updates")
    for number, places in enumerate(schedule[:updates], start=1):
        good = isinstance(places, list) and all(
            type(place) is int and 0 <= place < documents for place in places
        )
        if not good or not places:
            raise TrainerError(f"{path}: update {number} is not a list of lines of the corpus")
    return schedule[:updates]


def share(documents: Sequence[Document], rank: int, workers: int) -> list[Document]:
    """A rank's documents of one update: places rank, rank + workers, ...; longest first.

    Sorting only changes which documents are padded together. It is stable, so ties stay in the
    schedule's order.
    """
    return sorted(documents[rank::workers], key=lambda document: -len(document.tokens))


def microbatches(documents: Sequence[Document], size: int) -> list[Batch]:
    """Consecutive pieces of `size` documents, the last one possibly smaller."""
    return [collate(documents[i : i + size]) for i in range(0, len(documents), size)]


def weighted_targets(documents: Sequence[Document]) -> float:
    """The objective's normaliser: sum of weight times targets. Exact for weights that are."""
    return sum(document.weight * document.target_count for document in documents)


def collate(documents: Sequence[Document]) -> Batch:
    """Pad documents to the longest and list their target positions."""
    lengths = [max(end for _, end in document.targets) - 1 for document in documents]
    width = max(lengths)
    ids_BT = torch.zeros(len(documents), width, dtype=torch.int64)
    places: list[int] = []
    targets: list[int] = []
    owners: list[int] = []
    for row, (document, length) in enumerate(zip(documents, lengths, strict=True)):
        ids_BT[row, :length] = torch.tensor(document.tokens[:length])
        for start, end in document.targets:
            places += range(row * width + start - 1, row * width + end - 1)
            targets += document.tokens[start:end]
            owners += [row] * (end - start)
    document_N = torch.tensor(owners)
    weights = torch.tensor([document.weight for document in documents], dtype=torch.float32)
    return Batch(
        ids_BT, torch.tensor(places), torch.tensor(targets), weights[document_N], document_N
    )
