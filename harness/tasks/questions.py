"""What every task family gives: a question about a table, its right answer, and a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.tasks.draws import Draws
from harness.tasks.records import Table

Answer = dict[str, str | int | list[str] | None]


@dataclass(frozen=True)
class Question:
    """What is asked of a table (an id, a status or nothing) and the right answer."""

    asked: str
    answer: Answer


@dataclass(frozen=True)
class FamilyRules:
    """`ask` draws a question (the flag: ask for what is absent); `spoil` draws a wrong answer of
    the same form."""

    ask: Callable[[Draws, Table, bool], Question]
    spoil: Callable[[Draws, Table, Answer], Answer]
