"""Dealing: roles share nothing, and what one role gets does not depend on another's size."""

from collections import Counter

import pytest

from harness.errors import BadInput
from harness.tasks import roles
from harness.tasks.roles import deal_cases
from tests.unit.inputs.small_plans import small_plan

GOLDEN = [
    "8ce90a39c7e4396fbd363565a800cabe2c8d0644060df1889d878e95591d797f",
    "313fe49902d6a937465aad43a722c4f3d3223386c0760996f0e160260a4a9504",
]


def test_no_case_is_in_two_roles_by_id_or_by_content() -> None:
    plan = small_plan(
        {"data.roles": {"train_tasks": 2000, "train_replay": 0, "development": 64, "test": 512}}
    )
    cases = [case for dealt in deal_cases(plan).values() for case in dealt]
    assert len(cases) == 2576
    assert len({case.id for case in cases}) == len({case.content for case in cases}) == 2576


def test_families_take_turns_and_wordings_have_equal_shares() -> None:
    dealt = deal_cases(small_plan({"data.roles.test": 160}))
    families = ["lookup", "filter", "total", "sort"]
    assert [case.family for case in dealt["test"]] == families * 40
    shares = Counter((case.family, case.wording) for case in dealt["test"])
    assert shares == {(family, wording): 10 for family in families for wording in range(4)}


def test_held_out_wordings_are_in_the_test_only() -> None:
    dealt = deal_cases(small_plan())
    assert {case.wording for case in dealt["train"]} == {0, 1}
    assert {case.wording for case in dealt["development"]} == {0, 1}
    assert {case.wording for case in dealt["test"]} == {0, 1, 2, 3}


def test_absent_lookups_use_every_wording() -> None:
    dealt = deal_cases(small_plan({"data.roles.test": 640, "data.tasks.absent_every": 4}))
    assert {case.wording for case in dealt["test"] if case.asked == "Z000"} == {0, 1, 2, 3}


def test_a_larger_training_set_leaves_the_other_roles_as_they_are() -> None:
    small = deal_cases(small_plan())
    large = deal_cases(small_plan({"data.roles.train_tasks": 480}))
    assert small["test"] == large["test"]
    assert small["development"] == large["development"]
    assert small["train"] == large["train"][:48]


def test_another_seed_gives_other_cases() -> None:
    one, two = deal_cases(small_plan()), deal_cases(small_plan({"seed": "another"}))
    ids = [{case.id for cases in dealt.values() for case in cases} for dealt in (one, two)]
    assert not ids[0] & ids[1]


def test_ids_are_the_hash_of_content() -> None:
    dealt = deal_cases(small_plan())
    assert [case.id for case in dealt["test"][:2]] == GOLDEN


def test_a_role_that_cannot_be_filled_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    case = deal_cases(small_plan())["test"][0]
    monkeypatch.setattr(roles, "draw_case", lambda *_, **__: case)
    with pytest.raises(BadInput, match="'test' cannot have 24 different cases; 1 were found"):
        deal_cases(small_plan())
