"""Which positions of a document are predicted: half-open spans of target positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """Consecutive tokens of a document that are all targets, or none is."""

    ids: tuple[int, ...]
    target: bool


@dataclass(frozen=True)
class Document:
    """Tokens with their target spans, ascending and apart from each other."""

    tokens: tuple[int, ...]
    targets: tuple[Span, ...]

    @property
    def target_count(self) -> int:
        """Number of target positions."""
        return sum(end - start for start, end in self.targets)


def join(pieces: Iterable[Piece]) -> Document:
    """Put pieces together; neighbouring target pieces become one span.

    Position 0 is never a target: nothing comes before it to predict it from.
    """
    tokens: list[int] = []
    spans: list[Span] = []
    for piece in pieces:
        start, end = len(tokens), len(tokens) + len(piece.ids)
        tokens.extend(piece.ids)
        start = max(start, 1)
        if not piece.target or start >= end:
            continue
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return Document(tuple(tokens), tuple(spans))
