"""Lookup: given an id, answer its city and its units; an absent id is answered with nulls."""

from __future__ import annotations

from harness.tasks.draws import Draws
from harness.tasks.questions import Answer, FamilyRules, Question
from harness.tasks.records import ABSENT_ID, CITIES, MAX_UNITS, Table


def ask(draws: Draws, table: Table, absent: bool) -> Question:
    """Ask for one record of the table, or for Z000."""
    if absent:
        return Question(ABSENT_ID, {"city": None, "units": None})
    record = draws.choose(table)
    return Question(record.id, {"city": record.city, "units": record.units})


def spoil(draws: Draws, table: Table, answer: Answer) -> Answer:
    """Another city or other units; for an absent id, a record that does not exist."""
    cities = [city for city in CITIES if city != answer["city"]]
    units = [count for count in range(MAX_UNITS + 1) if count != answer["units"]]
    if answer["city"] is None:
        return {"city": draws.choose(cities), "units": draws.choose(units)}
    if draws.chance(2):
        return {"city": draws.choose(cities), "units": answer["units"]}
    return {"city": answer["city"], "units": draws.choose(units)}


RULES = FamilyRules(ask=ask, spoil=spoil)
