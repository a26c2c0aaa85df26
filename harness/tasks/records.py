"""The small tables that tasks ask about."""

from __future__ import annotations

from dataclasses import dataclass, fields

from harness.tasks.draws import Draws

ABSENT_ID = "Z000"
"""Asked for when the right answer is 'not there'; no table ever holds it."""

STATUSES = ("ready", "pending", "closed")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_UNITS = 19
MAX_PRICE = 19
MAX_PRIORITY = 9

CITIES = (
    "Athens", "Austin", "Bath", "Berlin", "Bern", "Bonn", "Boston", "Cairo", "Cork", "Dallas",
    "Delhi", "Denver", "Dublin", "Geneva", "Havana", "Kyoto", "Leeds", "Lima", "London", "Lyon",
    "Madrid", "Manila", "Miami", "Milan", "Moscow", "Munich", "Naples", "Nice", "Oslo", "Paris",
    "Perth", "Prague", "Rome", "Seoul", "Sofia", "Sydney", "Tokyo", "Vienna", "Warsaw", "York",
)  # fmt: skip


@dataclass(frozen=True)
class Record:
    """One row. Units 0 to 19, price 1 to 19, priority 1 to 9 (9 is the most urgent)."""

    id: str
    city: str
    units: int
    price: int
    status: str
    priority: int


Table = tuple[Record, ...]
HEADER = " ".join(field.name for field in fields(Record))


def draw_table(draws: Draws, rows: int) -> Table:
    """A table of `rows` records whose ids differ from each other and from Z000."""
    taken = {ABSENT_ID}
    table = []
    for _ in range(rows):
        while (identity := f"{draws.choose(LETTERS)}{draws.below(1000):03d}") in taken:
            pass
        taken.add(identity)
        table.append(
            Record(
                id=identity,
                city=draws.choose(CITIES),
                units=draws.within(0, MAX_UNITS),
                price=draws.within(1, MAX_PRICE),
                status=draws.choose(STATUSES),
                priority=draws.within(1, MAX_PRIORITY),
            )
        )
    return tuple(table)


def show_table(table: Table) -> str:
    """The table as it stands in a prompt: a header line and a line a record, blanks between."""
    return "\n".join([HEADER, *(" ".join(map(str, vars(record).values())) for record in table)])
