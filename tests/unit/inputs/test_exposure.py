"""The exposure ledger: what may be used again, and with which words it is said."""

from typing import Any

import pytest

from harness.errors import BadInput, Refused
from harness.exposure import build_ledger, check
from tests.unit.inputs.small_plans import small_plan

MINE, THEIRS = "1" * 64, "2" * 64
ONE, TWO, THREE = "1" * 16, "2" * 16, "3" * 16


def earlier(name: str = "first", plan_hash: str = THEIRS, **exposure: list[str]) -> dict[str, Any]:
    return {"plan_hash": plan_hash, "plan": name, "exposure": exposure, "identity": "and more"}


def test_new_cases_pass_without_a_note() -> None:
    ledger = build_ledger(MINE, [earlier(train=[ONE], test=[TWO])])
    assert check(small_plan(), {"test": [THREE], "train": []}, ledger) == ()


@pytest.mark.parametrize("used_as", ["train", "replay", "development", "test", "retention"])
@pytest.mark.parametrize("role", ["train", "development", "test", "retention"])
def test_a_case_that_was_used_is_refused_whatever_it_was(role: str, used_as: str) -> None:
    ledger = build_ledger(MINE, [earlier() | {"exposure": {used_as: [ONE, TWO]}}])
    with pytest.raises(Refused) as caught:
        check(small_plan(), {role: [THREE, TWO, ONE]}, ledger)
    assert caught.value.what.startswith(
        f"2 of 3 {role} cases were in the role {used_as} of the earlier plan 'first', "
        f"the first is {TWO}"
    )


def test_replay_may_be_used_again() -> None:
    ledger = build_ledger(MINE, [earlier(replay=[ONE], retention=[TWO])])
    assert check(small_plan(), {"replay": [ONE, TWO]}, ledger) == ()


def test_a_declared_role_is_let_through_with_a_note() -> None:
    plan = small_plan({"data.exposed": [{"role": "retention", "reason": "public passages"}]})
    ledger = build_ledger(MINE, [earlier(retention=[ONE]), earlier("second", "3" * 64, test=[TWO])])
    assert check(plan, {"retention": [ONE], "test": [THREE]}, ledger) == (
        "1 of 1 retention cases were in the role retention of the earlier plan 'first': "
        "public passages",
    )
    with pytest.raises(Refused, match=r"1 of 1 test cases .* 'second'"):
        check(plan, {"retention": [ONE], "test": [TWO]}, ledger)


def test_a_replication_is_exempt_and_says_so() -> None:
    ledger = build_ledger(MINE, [earlier(plan_hash=MINE, test=[ONE])])
    assert check(small_plan(), {"test": [ONE]}, ledger) == (
        "This is a replication: the plan 'first' was prepared before.",
    )


def test_full_ids_and_first_digits_are_the_same_case() -> None:
    ledger = build_ledger(MINE, [earlier(test=[ONE * 4])])
    with pytest.raises(Refused):
        check(small_plan(), {"test": [ONE + "f" * 48]}, ledger)


def test_a_commitment_found_twice_counts_once_and_order_does_not_matter() -> None:
    plan = small_plan({"data.exposed": [{"role": "test", "reason": "why"}]})
    found = [earlier(test=[ONE]), earlier(test=[ONE]), earlier("a", "3" * 64, test=[ONE])]
    notes = check(plan, {"test": [ONE]}, build_ledger(MINE, found))
    assert len(notes) == 2
    assert notes == check(plan, {"test": [ONE]}, build_ledger(MINE, found[::-1]))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"plan_hash": THEIRS, "plan": "x"},
        {"plan_hash": THEIRS, "plan": "x", "exposure": []},
        {"plan_hash": THEIRS, "plan": "x", "exposure": {"test": None}},
        {"plan_hash": THEIRS, "plan": "x", "exposure": {"exam": []}},
    ],
)
def test_an_object_that_is_no_commitment_is_named(value: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"earlier prepared\.json") as caught:
        build_ledger(MINE, [earlier(), value])
    assert caught.value.where == "commitment 1"
