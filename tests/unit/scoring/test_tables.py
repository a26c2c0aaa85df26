"""Tables and flips, as a report would read them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.scoring.tables import CaseRow, Tally, compare, tabulate
from harness.statistics.counts import count_pairs

settings.register_profile("no-deadline", deadline=None)  # a busy machine is not a fault
settings.load_profile("no-deadline")

ROWS = [
    CaseRow("c1", "lookup", 0, correct=True, valid_json=True),
    CaseRow("c2", "lookup", 2, correct=False, valid_json=True),
    CaseRow("c3", "total", 2, correct=False, valid_json=False),
    CaseRow("c4", "filter", 10, correct=True, valid_json=True),
]


def with_correct(rows: list[CaseRow], *correct_ids: str) -> list[CaseRow]:
    return [
        dataclasses.replace(row, correct=row.case_id in correct_ids, valid_json=True)
        for row in rows
    ]


class TestTable:
    def test_counts_by_family_in_ascending_order(self) -> None:
        assert tabulate(ROWS).by_family == (
            ("filter", Tally(total=1, correct=1, valid_json=1)),
            ("lookup", Tally(total=2, correct=1, valid_json=2)),
            ("total", Tally(total=1, correct=0, valid_json=0)),
        )

    def test_counts_by_wording_in_numeric_order(self) -> None:
        assert tabulate(ROWS).by_wording == (
            (0, Tally(total=1, correct=1, valid_json=1)),
            (2, Tally(total=2, correct=0, valid_json=1)),
            (10, Tally(total=1, correct=1, valid_json=1)),
        )

    def test_counts_overall_and_shares(self) -> None:
        overall = tabulate(ROWS).overall
        assert overall == Tally(total=4, correct=2, valid_json=3)
        assert (overall.accuracy, overall.valid_json_share) == (0.5, 0.75)

    def test_order_of_rows_is_free(self) -> None:
        assert tabulate(reversed(ROWS)) == tabulate(ROWS)

    def test_is_frozen_and_hashable(self) -> None:
        table = tabulate(ROWS)
        assert hash(table) == hash(tabulate(ROWS))
        with pytest.raises(dataclasses.FrozenInstanceError):
            table.overall = Tally(1, 1, 1)  # type: ignore[misc]

    def test_no_rows_is_refused(self) -> None:
        with pytest.raises(ValueError, match="no cases"):
            tabulate([])

    def test_a_case_counted_twice_is_refused_by_name(self) -> None:
        with pytest.raises(ValueError, match="'c2' appears twice"):
            tabulate([*ROWS, ROWS[1]])


class TestRow:
    def test_correct_without_valid_json_is_refused(self) -> None:
        with pytest.raises(ValueError, match="'c9' is marked correct and not valid JSON"):
            CaseRow("c9", "lookup", 0, correct=True, valid_json=False)

    @pytest.mark.parametrize(
        "change", [{"correct": 1}, {"valid_json": "yes"}, {"wording": True}, {"case_id": 7}]
    )
    def test_wrong_types_are_refused(self, change: dict[str, object]) -> None:
        with pytest.raises(ValueError, match="is not a"):
            dataclasses.replace(ROWS[1], **change)  # type: ignore[arg-type]


class TestFlips:
    def test_names_the_cases_that_flipped(self) -> None:
        flips = compare(with_correct(ROWS, "c1", "c3"), with_correct(ROWS, "c1", "c4"))
        assert flips.both == ("c1",)
        assert flips.gained == ("c3",)
        assert flips.lost == ("c4",)
        assert flips.neither == ("c2",)

    def test_pairs_by_id_and_not_by_position(self) -> None:
        candidate, reference = with_correct(ROWS, "c1", "c3"), with_correct(ROWS, "c1", "c4")
        assert compare(reversed(candidate), reference) == compare(candidate, reference)

    def test_a_case_missing_from_the_reference_is_named(self) -> None:
        with pytest.raises(ValueError, match="'c2' is missing from the reference"):
            compare(ROWS, [ROWS[0], ROWS[2]])

    def test_a_case_missing_from_the_candidate_is_named(self) -> None:
        with pytest.raises(ValueError, match="'c3' is missing from the candidate"):
            compare(ROWS[:2], ROWS)

    def test_the_same_number_of_other_cases_is_still_refused(self) -> None:
        other = dataclasses.replace(ROWS[0], case_id="c0")
        with pytest.raises(ValueError, match="'c0' is missing from the candidate"):
            compare(ROWS, [other, *ROWS[1:]])

    def test_the_same_id_in_another_family_is_refused(self) -> None:
        other = dataclasses.replace(ROWS[0], family="total")
        with pytest.raises(ValueError, match="'c1' has two different values of family"):
            compare(ROWS, [other, *ROWS[1:]])

    def test_an_empty_side_is_refused(self) -> None:
        with pytest.raises(ValueError, match="the reference has no cases"):
            compare(ROWS, [])

    @given(st.dictionaries(st.text(), st.tuples(st.booleans(), st.booleans()), min_size=1))
    def test_every_case_is_in_exactly_one_place(
        self, outcomes: dict[str, tuple[bool, bool]]
    ) -> None:
        candidate = [CaseRow(i, "lookup", 0, c, True) for i, (c, _) in outcomes.items()]
        reference = [CaseRow(i, "lookup", 0, r, True) for i, (_, r) in outcomes.items()]
        flips = compare(candidate, reference)
        everything = [*flips.both, *flips.gained, *flips.lost, *flips.neither]
        assert sorted(everything) == sorted(outcomes)
        assert flips.counts == count_pairs(
            [c for c, _ in outcomes.values()], [r for _, r in outcomes.values()]
        )
        swapped = compare(reference, candidate)
        assert (swapped.gained, swapped.lost) == (flips.lost, flips.gained)
