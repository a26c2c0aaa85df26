"""Prepared documents: reading them, a rank's share of an update, microbatches.

Shape suffixes: B documents, T positions, N target positions of the microbatch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.attention import Segments
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

    @property
    def read_length(self) -> int:
        """How many tokens are read: all before the last target."""
        return max(end for _, end in self.targets) - 1


@dataclass(frozen=True)
class Batch:
    """Documents that go through the network at once."""

    ids_BT: Tensor
    """int64, right-padded with 0. A document is cut before its last target, which it ends with.
    Packed documents are one row."""
    place_N: Tensor
    """int64: where in the flattened B×T hidden states each target is predicted from."""
    target_N: Tensor
    """int64: the token to predict."""
    weight_N: Tensor
    """float32: its document's weight."""
    document_N: Tensor
    """int64: its document's place in the batch."""
    segments: Segments | None = None
    """Where packed documents lie, the last ones filling the row up; None when padded."""

    def to(self, device: torch.device) -> Batch:
        """The batch on a device; copying to a GPU is queued, not waited for."""
        if device.type == "cpu":
            return self

        def move(tensor: Tensor) -> Tensor:
            return tensor.pin_memory().to(device, non_blocking=True)

        return Batch(
            move(self.ids_BT),
            move(self.place_N),
            move(self.target_N),
            move(self.weight_N),
            move(self.document_N),
            self.segments and self.segments.to(move),
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
    width = max(document.read_length for document in documents)
    ids_BT = torch.zeros(len(documents), width, dtype=torch.int64)
    for row, document in enumerate(documents):
        ids_BT[row, : document.read_length] = torch.tensor(document.tokens[: document.read_length])
    return _with_targets(documents, ids_BT, [row * width for row in range(len(documents))], None)


def collate_packed(documents: Sequence[Document], fill_to: int | None = None) -> Batch:
    """Documents behind each other in one row.

    `fill_to` positions are made of it by segments of zeros at its end. None of those is longer
    than the longest document, which attention relies on.
    """
    lengths = [document.read_length for document in documents]
    missing = (fill_to or sum(lengths)) - sum(lengths)
    if missing < 0:
        raise ValueError(f"{sum(lengths)} positions do not fit into {fill_to}")
    pieces = [d.tokens[:length] for d, length in zip(documents, lengths, strict=True)]
    ids_1T = integers(chain(*pieces, repeat(0, missing)))[None]
    starts = [0, *accumulate(lengths)][:-1]
    filling = [max(lengths)] * (missing // max(lengths)) + [missing % max(lengths)]
    segments = Segments.of(tuple(length for length in (*lengths, *filling) if length))
    return _with_targets(documents, ids_1T, starts, segments)


def _with_targets(
    documents: Sequence[Document], ids_BT: Tensor, starts: Sequence[int], segments: Segments | None
) -> Batch:
    """`starts` are the places of the documents' first tokens in the flattened ids."""
    places: list[int] = []
    words: list[int] = []
    for document, at in zip(documents, starts, strict=True):
        for start, end in document.targets:
            places += range(at + start - 1, at + end - 1)
            words += document.tokens[start:end]
    counts = torch.tensor([document.target_count for document in documents])
    document_N = torch.arange(len(documents)).repeat_interleave(counts)
    weights = torch.tensor([document.weight for document in documents], dtype=torch.float32)
    return Batch(
        ids_BT,
        integers(places),
        integers(words),
        weights[document_N],
        document_N,
        segments,
    )


def integers(values: Iterable[int]) -> Tensor:
    """An int64 tensor of at least one number.

    Several times faster than torch.tensor, which matters: the next update is prepared while this
    one runs, and as long as Python works on it no kernel is queued.
    """
    return torch.frombuffer(array("q", values), dtype=torch.int64)
