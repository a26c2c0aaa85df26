"""Tables are made as the plan's page says."""

import re

from hypothesis import given
from hypothesis import strategies as st

from harness.tasks.draws import Draws
from harness.tasks.records import CITIES, STATUSES, draw_table, show_table

LABELS = st.text(max_size=8)


@given(LABELS, st.integers(2, 12))
def test_every_record_is_within_its_ranges(label: str, rows: int) -> None:
    table = draw_table(Draws(label), rows)
    assert len(table) == rows
    assert len({record.id for record in table}) == rows
    for record in table:
        assert re.fullmatch("[A-Z][0-9]{3}", record.id)
        assert record.id != "Z000"
        assert 0 <= record.units <= 19
        assert 1 <= record.price <= 19
        assert 1 <= record.priority <= 9
        assert record.status in STATUSES
        assert record.city in CITIES


def test_all_extremes_occur() -> None:
    table = [record for index in range(400) for record in draw_table(Draws(index), 12)]
    assert {record.units for record in table} == set(range(20))
    assert {record.price for record in table} == set(range(1, 20))
    assert {record.priority for record in table} == set(range(1, 10))
    assert {record.status for record in table} == set(STATUSES)
    assert {record.city for record in table} == set(CITIES)


@given(LABELS, st.integers(2, 12))
def test_a_shown_table_has_a_heading_and_a_line_a_record(label: str, rows: int) -> None:
    table = draw_table(Draws(label), rows)
    heading, *lines = show_table(table).split("\n")
    assert heading == "id city units price status priority"
    assert [line.split(" ") for line in lines] == [
        [r.id, r.city, str(r.units), str(r.price), r.status, str(r.priority)] for r in table
    ]
