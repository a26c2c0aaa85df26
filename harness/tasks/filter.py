"""Filter: the ids of one status, in the order of the table."""

from __future__ import annotations

from harness.tasks.draws import Draws
from harness.tasks.questions import Answer, FamilyRules, Question
from harness.tasks.records import STATUSES, Table

EMPTY_ONE_IN = 16
"""How often a status that no record has is asked for, where there is one."""


def ask(draws: Draws, table: Table, absent: bool) -> Question:
    """Ask for a status, nearly always one that the table has."""
    present = [status for status in STATUSES if any(row.status == status for row in table)]
    missing = [status for status in STATUSES if status not in present]
    rare = draws.chance(EMPTY_ONE_IN)
    status = draws.choose(missing if rare and missing else present)
    return Question(status, {"ids": [row.id for row in table if row.status == status]})


def spoil(draws: Draws, table: Table, answer: Answer) -> Answer:
    """One record too many or one too few, still in the order of the table."""
    right = answer["ids"]
    assert isinstance(right, list)
    moved = draws.choose(table).id
    return {"ids": [row.id for row in table if (row.id in right) != (row.id == moved)]}


RULES = FamilyRules(ask=ask, spoil=spoil)
