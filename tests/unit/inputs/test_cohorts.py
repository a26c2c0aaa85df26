"""A second cohort of tasks: new, beside those of an earlier study that are used again."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BadInput, Refused
from harness.exposure import ID_DIGITS, Ledger, build_ledger
from harness.inputs import prepare_inputs
from harness.inputs.cohorts import deal_cohort, prove_earlier
from harness.inputs.prepared import PreparedInputs
from harness.plan import LoadedPlan, load_plan
from harness.tasks.cases import Case
from tests.unit.inputs.small_plans import SMALL, save_tokenizer
from trainer import contract

ROWS = {"families": ["lookup", "filter"], "rows": 2}


def write(folder: Path, name: str, value: dict[str, Any]) -> LoadedPlan:
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "plan.json").write_text(json.dumps({**value, "name": name}))
    return load_plan(place)


def first_of(folder: Path) -> LoadedPlan:
    value = copy.deepcopy(SMALL)
    value["data"]["tasks"] |= ROWS
    return write(folder, "first", value)


def second_of(folder: Path, first: LoadedPlan, **parent: Any) -> LoadedPlan:
    value = copy.deepcopy(SMALL)
    value["data"]["tasks"] |= ROWS
    value["seed"] = "another seed"
    value["parent"] = {
        "study": "first", "run": "20260101-000000-0000", "candidate": "clean",
        "parameter_root": "0" * 64, "sha256": "1" * 64, "bytes": 1,
        "plan": "../first/plan.json", "plan_hash": first.hash, **parent,
    }  # fmt: skip
    value["data"]["roles"]["train_earlier"] = 16
    value["data"]["retention"].append(
        {"name": "first-cohort", "source": {"kind": "earlier-test"}, "count": 10}
    )
    value["data"]["exposed"] = [{"role": "retention", "reason": "What is left of the first."}]
    value["arms"][0]["start"] = "parent"
    return write(folder, "second", value)


def prepared_of(loaded: LoadedPlan, out: Path, ledger: Ledger) -> PreparedInputs:
    tokenizer = save_tokenizer(loaded.folder)
    return prepare_inputs(loaded.plan, loaded.folder, tokenizer, out, ledger=ledger)


def committed(loaded: LoadedPlan, inputs: PreparedInputs) -> dict[str, Any]:
    return {"plan_hash": loaded.hash, "plan": loaded.plan.name, "exposure": inputs.exposure}


@pytest.fixture
def first(tmp_path: Path) -> LoadedPlan:
    return first_of(tmp_path)


@pytest.fixture
def record(first: LoadedPlan, tmp_path: Path) -> dict[str, Any]:
    """What the first study committed to."""
    return committed(first, prepared_of(first, tmp_path / "a", Ledger(first.hash)))


def asked(cases: tuple[Case, ...]) -> set[str]:
    return {case.content for case in cases}


def test_no_case_of_the_second_cohort_asks_what_one_of_the_first_asked(
    first: LoadedPlan, tmp_path: Path
) -> None:
    """Even with the first one's seed, whose draws would all come again."""
    second = second_of(tmp_path, first)
    again = second.plan.model_copy(update={"seed": first.plan.seed})
    for plan in (second.plan, again):
        cohort = deal_cohort(plan, second.folder)
        assert cohort.earlier is not None
        new = [content for cases in cohort.cases.values() for content in asked(cases)]
        assert len(set(new)) == len(new) == 48 + 8 + 24
        assert not set(new) & cohort.earlier.contents()


def test_what_is_used_again_is_the_first_studys_own(
    first: LoadedPlan, record: dict[str, Any], tmp_path: Path
) -> None:
    second = second_of(tmp_path, first)
    inputs = prepared_of(second, tmp_path / "b", build_ledger(second.hash, [record]))
    rows = list(contract.read_lines(tmp_path / "b" / "text.clean.jsonl"))
    tasks = [row["id"][:ID_DIGITS] for row in rows if row["kind"] == "task"]
    assert len(tasks) == 48 + 16
    assert tasks[48:] == list(record["exposure"]["train"][:16])
    assert not set(tasks[:48]) & set(record["exposure"]["train"])
    weights = contract.read_lines(tmp_path / "b" / "train.clean.jsonl")
    assert {row["weight"] for row in weights if row["id"][:ID_DIGITS] in tasks[48:]} == {8}

    probes = list(contract.read_lines(tmp_path / "b" / "text.retention.first-cohort.jsonl"))
    cases = deal_cohort(first.plan, first.folder).cases["test"][:10]
    assert [row["messages"][0]["content"] for row in probes] == [case.prompt for case in cases]
    told = [note for note in inputs.notes if "role test of the earlier plan 'first'" in note]
    assert told and "10 of" in told[0] and told[0].endswith("What is left of the first.")
    assert inputs.counts["train-earlier"] == 16


def test_probes_of_the_first_cohort_must_be_declared(
    first: LoadedPlan, record: dict[str, Any], tmp_path: Path
) -> None:
    second = second_of(tmp_path, first)
    value = json.loads(second.data)
    value["data"]["exposed"] = []
    silent = write(tmp_path, "silent", value)
    with pytest.raises(Refused, match="for retention"):
        prepared_of(silent, tmp_path / "c", build_ledger(silent.hash, [record]))


def test_without_a_commitment_nothing_is_proved(first: LoadedPlan, tmp_path: Path) -> None:
    second = second_of(tmp_path, first)
    with pytest.raises(Refused, match="no prepared inputs of 'first' are committed") as caught:
        prepared_of(second, tmp_path / "d", Ledger(second.hash))
    assert caught.value.next_command == "git merge harness/20260101-000000-0000"


@pytest.mark.parametrize("role", ["train", "development", "test"])
def test_a_commitment_to_other_cases_is_refused(
    first: LoadedPlan, record: dict[str, Any], tmp_path: Path, role: str
) -> None:
    second = second_of(tmp_path, first)
    other = {**record["exposure"], role: ("f" * 16, *record["exposure"][role][1:])}
    ledger = build_ledger(second.hash, [{**record, "exposure": other}])
    earlier = deal_cohort(second.plan, second.folder).earlier
    assert earlier is not None and second.plan.parent is not None
    with pytest.raises(Refused, match=f"the {role} cases that are dealt from the plan"):
        prove_earlier(second.plan.parent, earlier, ledger)


@pytest.mark.parametrize(
    ("parent", "words"),
    [
        ({"plan_hash": "2" * 64}, "and the parent is of 'first' of the hash 2222"),
        ({"study": "other"}, "and the parent is of 'other'"),
        ({"candidate": "nobody"}, "has no arm called 'nobody'"),
        ({"plan": "../nowhere/plan.json"}, "cannot be read"),
    ],
)
def test_a_plan_that_is_not_the_parents_is_an_error(
    first: LoadedPlan, tmp_path: Path, parent: dict[str, Any], words: str
) -> None:
    second = second_of(tmp_path, first, **parent)
    with pytest.raises(BadInput, match=words):
        deal_cohort(second.plan, second.folder)


def test_more_than_the_first_study_had_is_an_error(
    first: LoadedPlan, record: dict[str, Any], tmp_path: Path
) -> None:
    value = json.loads(second_of(tmp_path, first).data)
    value["data"]["roles"]["train_earlier"] = 49
    greedy = write(tmp_path, "greedy", value)
    with pytest.raises(BadInput, match="48 training tasks, not 49") as caught:
        prepared_of(greedy, tmp_path / "e", build_ledger(greedy.hash, [record]))
    assert caught.value.where == "plan#/data/roles/train_earlier"
