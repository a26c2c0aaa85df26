"""Sort: the ids of the first two records by priority descending, then id ascending."""

from __future__ import annotations

from harness.tasks.draws import Draws
from harness.tasks.questions import Answer, FamilyRules, Question
from harness.tasks.records import Table


def ask(draws: Draws, table: Table, absent: bool) -> Question:
    """Ask for the top two."""
    ranked = sorted(table, key=lambda row: (-row.priority, row.id))
    return Question("", {"ids": [row.id for row in ranked[:2]]})


def spoil(draws: Draws, table: Table, answer: Answer) -> Answer:
    """Another ordered pair of ids of the table."""
    pairs = [[one.id, two.id] for one in table for two in table if one is not two]
    return {"ids": draws.choose([pair for pair in pairs if pair != answer["ids"]])}


RULES = FamilyRules(ask=ask, spoil=spoil)
