"""Families: right answers, worked out here by hand, and no reply that is right by chance."""

from collections import Counter
from itertools import combinations

import pytest

from harness.plan.data import Family
from harness.tasks.cases import FAMILIES, Case, answer_text, draw_case
from harness.tasks.draws import Draws
from harness.tasks.records import Record
from harness.tasks.roles import deal_cases
from harness.tasks.wordings import WORDINGS, write_prompt
from tests.unit.inputs.small_plans import small_plan

TABLE = (
    Record("K417", "Oslo", 12, 7, "ready", 3),
    Record("B002", "Lima", 0, 19, "closed", 9),
    Record("C900", "Rome", 5, 4, "ready", 9),
)


def ask(family: Family, label: int, absent: bool = False) -> tuple[str, object]:
    question = FAMILIES[family].ask(Draws(label), TABLE, absent)
    return question.asked, question.answer


def ask_lookup(label: int) -> tuple[str, object]:
    return ask("lookup", label)


def ask_filter(label: int) -> tuple[str, object]:
    return ask("filter", label)


def test_lookup_answers_city_and_units() -> None:
    assert {asked: str(answer) for asked, answer in map(ask_lookup, range(40))} == {
        "K417": str({"city": "Oslo", "units": 12}),
        "B002": str({"city": "Lima", "units": 0}),
        "C900": str({"city": "Rome", "units": 5}),
    }


def test_lookup_of_an_absent_id_answers_nulls() -> None:
    assert ask("lookup", 1, absent=True) == ("Z000", {"city": None, "units": None})


def test_filter_keeps_the_order_of_the_table() -> None:
    assert {asked: str(answer) for asked, answer in map(ask_filter, range(400))} == {
        "ready": str({"ids": ["K417", "C900"]}),
        "closed": str({"ids": ["B002"]}),
        "pending": str({"ids": []}),
    }


def test_total_sums_units_times_price() -> None:
    assert ask("total", 1) == ("", {"total": 12 * 7 + 0 * 19 + 5 * 4})


def test_sort_takes_the_top_two_by_priority_then_id() -> None:
    assert ask("sort", 1) == ("", {"ids": ["B002", "C900"]})


@pytest.mark.parametrize("rows", [2, 3, 5, 12])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_no_constant_reply_is_right_more_than_once_in_five(family: Family, rows: int) -> None:
    plan = small_plan(
        {
            "data.tasks.families": [family],
            "data.tasks.rows": rows,
            "data.roles": {"train_tasks": 1000, "train_replay": 0, "development": 1, "test": 1},
        }
    )
    cases = deal_cases(plan)["train"]
    ((_, most),) = Counter(answer_text(case.answer) for case in cases).most_common(1)
    assert most <= 200


def test_one_lookup_in_five_asks_for_what_is_absent() -> None:
    tests = deal_cases(small_plan({"data.roles.test": 400}))["test"]
    lookups = [case for case in tests if case.family == "lookup"]
    assert [case.asked == "Z000" for case in lookups] == [
        number % 5 == 0 for number in range(1, 101)
    ]


def test_no_absent_lookup_when_the_plan_wants_none() -> None:
    cases = deal_cases(small_plan({"data.tasks.absent_every": 0, "data.roles.test": 400}))["test"]
    assert not [case for case in cases if case.asked == "Z000"]


def case_of(family: Family, wording: int, rows: int = 3) -> Case:
    return draw_case(Draws("w"), family=family, wording=wording, rows=rows, absent=False)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_four_wordings_are_truly_different(family: Family) -> None:
    assert len(WORDINGS[family]) == 4
    for one, two in combinations(WORDINGS[family], 2):
        mine, other = set(one.lower().split()), set(two.lower().split())
        assert len(mine & other) / len(mine | other) < 0.5


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_wordings_name_every_key_of_the_answer(family: Family) -> None:
    for wording, sentence in enumerate(WORDINGS[family]):
        for key in case_of(family, wording).answer:
            assert key in sentence


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_both_orders_of_table_and_question_occur(family: Family) -> None:
    heading = "id city units"
    first = [write_prompt(family, n, "ready", TABLE).startswith(heading) for n in range(4)]
    assert first == [True, False, True, False]


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("wording", range(4))
def test_a_prompt_never_holds_its_answer(family: Family, wording: int) -> None:
    case = case_of(family, wording)
    assert answer_text(case.answer) not in case.prompt
    assert case.asked in case.prompt
