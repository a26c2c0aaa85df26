"""Plain prose that comes with Harness: retention probes that are unlike the replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.tasks.draws import Draws
from harness.tasks.texts import Text, plain
from trainer import contract

FILE = Path(__file__).with_name("passages.jsonl")


def passages(seed: str, role: str) -> Iterator[Text]:
    """Every passage once, in an order that seed and role decide."""
    rows = contract.read_lines(FILE)
    for row in Draws(seed, role, "passages").shuffled(rows):
        yield plain(row["text"])
