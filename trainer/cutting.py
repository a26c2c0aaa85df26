"""How a rank's share of an update becomes microbatches: padded, or packed into rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from trainer.batches import Batch, Document, collate_packed, microbatches, share
from trainer.errors import TrainerError
from trainer.recipe import Train

Cut = Callable[[Sequence[Document]], list[Batch]]
"""From a rank's share of an update, longest first, to its microbatches."""

_STEP = 64
"""Rows are filled up to a multiple of this."""


@dataclass(frozen=True)
class Rows:
    """Every update of a rank is this many rows, none longer than `length`."""

    count: int
    length: int


def cut_of(recipe: Train, updates: Sequence[list[Document]], rank: int, workers: int) -> Cut:
    """The recipe's way. `updates` are all of the arm, also when it goes on in the middle: how one
    is cut depends on all of them. Raises TrainerError on a document longer than the budget.
    """
    if recipe.packed is None:
        return partial(microbatches, size=recipe.microbatch)
    shares = [share(documents, rank, workers) for documents in updates]
    rows = rows_for(shares, recipe.microbatch)
    return partial(in_rows, rows=rows, fill=recipe.packed.compiled)


def rows_for(shares: Sequence[Sequence[Document]], budget: int) -> Rows:
    """The fewest rows an update with which no row of any update is over `budget` positions.

    One count and one length for the whole arm: blocks are compiled once, and the last row of an
    update is not nearly empty.
    """
    longest = max((d.read_length for documents in shares for d in documents), default=1)
    if longest > budget:
        raise TrainerError(
            f"a document of {longest} tokens is longer than a microbatch of {budget} tokens"
        )
    most = max((sum(d.read_length for d in documents) for documents in shares), default=1)
    count = max(1, -(-most // budget))
    while (length := max((_longest_row(s, count) for s in shares), default=1)) > budget:
        count += 1
    return Rows(count, min(budget, -(-length // _STEP) * _STEP))


def deal(documents: Sequence[Document], rows: int) -> list[list[Document]]:
    """Each document, in the order given, to the row with the fewest positions so far (the first
    of equals). Longest first this leaves rows of nearly equal length. Rows may stay empty.
    """
    dealt: list[list[Document]] = [[] for _ in range(rows)]
    lengths = [0] * rows
    for document in documents:
        shortest = lengths.index(min(lengths))
        dealt[shortest].append(document)
        lengths[shortest] += document.read_length
    return dealt


def _longest_row(documents: Sequence[Document], rows: int) -> int:
    return max(sum(d.read_length for d in row) for row in deal(documents, rows))


def in_rows(documents: Sequence[Document], rows: Rows, fill: bool) -> list[Batch]:
    """An update's microbatches; with `fill` all of one length."""
    return [
        collate_packed(row, rows.length if fill else None)
        for row in deal(documents, rows.count)
        if row
    ]
