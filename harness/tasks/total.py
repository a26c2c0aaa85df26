"""Total: the sum of units times price over all records."""

from __future__ import annotations

from harness.tasks.draws import Draws
from harness.tasks.questions import Answer, FamilyRules, Question
from harness.tasks.records import Table

LARGEST_ERROR = 50


def ask(draws: Draws, table: Table, absent: bool) -> Question:
    """Ask for the invoice total."""
    return Question("", {"total": sum(row.units * row.price for row in table)})


def spoil(draws: Draws, table: Table, answer: Answer) -> Answer:
    """A total that is off by 1 to 50, never negative."""
    right = answer["total"]
    assert isinstance(right, int)
    error = draws.within(1, LARGEST_ERROR)
    below = draws.chance(2) and error <= right
    return {"total": right - error if below else right + error}


RULES = FamilyRules(ask=ask, spoil=spoil)
