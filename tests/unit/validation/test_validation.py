"""Honest studies agree with themselves; every kind of fault is found and named, never raised."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.validation import (
    Check,
    ValidationReport,
    check_losses,
    check_masks,
    check_prompts,
    check_retention_losses,
    check_scores,
    merge,
)
from tests.unit.validation.prepared_study import PLAN, Study, count


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return Study.make(tmp_path_factory.mktemp("honest"))


@pytest.fixture
def study(honest: Study, tmp_path: Path) -> Study:
    return honest.copy(tmp_path)


def prompts(study: Study) -> ValidationReport:
    return check_prompts(PLAN, study.inputs, study.tokenizer)


def masks(study: Study) -> ValidationReport:
    return check_masks(PLAN, study.inputs, study.tokenizer)


def scores(study: Study) -> ValidationReport:
    return check_scores(
        PLAN,
        study.inputs,
        study.tokenizer,
        model="clean",
        role="test",
        answers=study.folder / "answers-test.jsonl",
        scores=study.folder / "scores.jsonl",
    )


def losses(study: Study) -> ValidationReport:
    return check_losses(PLAN, study.inputs, "spoilt", [study.folder / "losses-0.jsonl"])


def retention(study: Study) -> ValidationReport:
    return check_retention_losses(
        study.inputs, "prose", "clean", study.folder / "retention-prose.jsonl"
    )


ALL = (prompts, masks, scores, losses, retention)


def test_an_honest_study_agrees(honest: Study) -> None:
    report = merge(check(honest) for check in ALL)
    assert report.disagreements == ()
    assert count(report, "prompts tokenised again") == 32
    assert count(report, "expected answers solved again") == 32
    assert count(report, "clean targets solved again") == 48
    assert count(report, "target masks decoded") == 2 * 64 + 18
    assert count(report, "answers scored again") == 24
    assert count(report, "weighted targets recounted") == 10
    assert count(report, "finite retention losses") == 12
    assert count(report, "damaged targets of the same form") > 0


def put(**fields: Any) -> Callable[[Any], Any]:
    return lambda row: row | fields


def shift(row: Any) -> Any:
    (first, *others) = row["targets"]
    return row | {"targets": [[first[0] - 1, first[1]], *others]}


def forge_end(row: Any) -> Any:
    """The last end token, written out in plain letters."""
    spelled = row["tokens"][:-1] + list(b"<|im_end|>")
    begin = row["targets"][-1][0]
    return row | {"tokens": spelled, "targets": [*row["targets"][:-1], [begin, len(spelled)]]}


def drop_a_document(schedule: Any) -> Any:
    first, *others = schedule["updates"]
    return {"updates": [first[:-1], *others]}


def favour_a_document(schedule: Any) -> Any:
    return {"updates": [[0] * len(update) for update in schedule["updates"]]}


def leave_range(schedule: Any) -> Any:
    first, *others = schedule["updates"]
    return {"updates": [[64, *first[1:]], *others]}


CASES, ANSWERS = "inputs/test.cases.jsonl", "inputs/test.answers.jsonl"
TRAIN, TEXT = "inputs/train.clean.jsonl", "inputs/text.clean.jsonl"
SCHEDULE, LOSSES = "inputs/schedule.json", "losses-0.jsonl"
FAULTS: list[tuple[Callable[[Study], ValidationReport], str, Callable[[Any], Any], str]] = [
    (prompts, CASES, lambda row: row | {"tokens": row["tokens"][:-1]}, "tokenises differently"),
    (prompts, CASES, lambda row: row | {"tokens": [*row["tokens"], 65]}, "holds its answer or"),
    (prompts, CASES, put(targets=[[1, 2]]), "has more fields"),
    (prompts, CASES, put(id="f" * 64), "stands beside another answer"),
    (prompts, ANSWERS, put(wording=1, family="sort"), "has content of the id"),
    (prompts, ANSWERS, put(expected={"total": -1}), "another right answer than its table"),
    (prompts, ANSWERS, put(prompt="Just say yes."), "tokenises differently"),
    (masks, TRAIN, shift, "targets other than the answers"),
    (masks, TRAIN, put(targets=[]), "targets other than the answers"),
    (masks, TRAIN, forge_end, "targets other than the answers"),
    (masks, TRAIN, lambda row: row | {"tokens": [*row["tokens"], 65]}, "decodes differently"),
    (masks, TRAIN, put(weight=7), "has the weight 7"),
    (masks, TRAIN, put(kind="replay"), "documents; the plan says"),
    (masks, TRAIN, put(id="f" * 64), "different ids"),
    (masks, TEXT, put(damaged=True, messages=[]), "form of the contract"),
    (masks, "inputs/text.damaged.jsonl", put(damaged=None), "damaged"),
    (masks, "inputs/retention.prose.jsonl", put(targets=[[0, 3]]), "targets other than"),
    (masks, SCHEDULE, drop_a_document, "update 1 is not a global batch"),
    (masks, SCHEDULE, leave_range, "update 1 is not a global batch"),
    (masks, SCHEDULE, favour_a_document, "documents are used 0 to 80 times"),
    (masks, SCHEDULE, lambda _: {"updates": []}, "the schedule has 0 updates"),
    (masks, SCHEDULE, lambda _: {"updates": 3}, "the schedule does not have the form"),
    (scores, "scores.jsonl", put(correct=False), "is recorded as wrong"),
    (scores, "scores.jsonl", put(valid_json=False), "is recorded as not valid JSON"),
    (scores, "scores.jsonl", put(family="poems"), "other labels"),
    (scores, "scores.jsonl", put(role="exam"), "the scores of test are not the cases"),
    (scores, "answers-test.jsonl", put(id="f" * 64), "the answers of test are not the cases"),
    (scores, "answers-test.jsonl", put(tokens=[123, 125]), "is recorded as right"),
    (scores, "answers-test.jsonl", put(tokens=[65] * 97), "97 tokens, stopped end"),
    (scores, "answers-test.jsonl", put(stopped="limit"), "stopped limit"),
    (scores, "answers-test.jsonl", put(tokens="abc"), "form of the contract"),
    (scores, "answers-test.jsonl", put(tokens=[-1]), "form of the contract"),
    (losses, LOSSES, put(update=2), "the updates are not 1 to 10"),
    (losses, LOSSES, put(loss=None), "loss is not a number"),
    (losses, LOSSES, put(loss="2", lr=True), "loss, lr is not a number"),
    (losses, LOSSES, put(lr=1e-4), "the learning rate is 0.0001, the schedule says 5e-05"),
    (losses, LOSSES, put(weighted_targets=1), "1 weighted targets, the inputs have"),
    (retention, "retention-prose.jsonl", put(loss=-0.5), "the loss is -0.5"),
    (retention, "retention-prose.jsonl", put(targets=1), "1 targets, the inputs have"),
    (retention, "retention-prose.jsonl", put(id="f" * 64), "other documents than the probes"),
]


@pytest.mark.parametrize(("check", "name", "change", "sentence"), FAULTS)
def test_a_fault_is_found(
    study: Study,
    check: Callable[[Study], ValidationReport],
    name: str,
    change: Callable[[Any], Any],
    sentence: str,
) -> None:
    study.change(name, 0, change)
    found = check(study).disagreements
    assert any(sentence in one for one in found), found


def test_a_number_that_json_cannot_hold_is_found(study: Study) -> None:
    path = study.folder / LOSSES
    path.write_text(path.read_text().replace("2,", "NaN,", 1))
    assert any("losses-0.jsonl cannot be read" in one for one in losses(study).disagreements)


@pytest.mark.parametrize("check", ALL)
def test_missing_and_broken_files_are_disagreements(
    study: Study, check: Callable[[Study], ValidationReport]
) -> None:
    files = [path for path in study.folder.rglob("*.json*") if path.name != "tokenizer.json"]
    for content in (b"", b"{", b"7\n", b'["a"]\n', b'{"id":{},"tokens":{},"targets":3}\n', b"\xff"):
        for path in files:
            path.write_bytes(content)
        assert check(study).disagreements
    for path in files:
        path.unlink()
    assert check(study).disagreements


def test_a_missing_worker_is_found(study: Study) -> None:
    report = check_losses(PLAN, study.inputs, "spoilt", [])
    assert report.disagreements == ("arm spoilt has 0 losses files and 1 workers",)


def test_a_case_in_two_roles_is_found(study: Study) -> None:
    for kind in ("cases", "answers"):
        line = (study.inputs / f"development.{kind}.jsonl").read_text().splitlines()[0]
        path = study.inputs / f"test.{kind}.jsonl"
        path.write_text("\n".join([line, *path.read_text().splitlines()[1:]]) + "\n")
    assert any("is also in development" in one for one in prompts(study).disagreements)


def test_many_faults_of_one_kind_end_in_a_count(study: Study) -> None:
    path = study.folder / "scores.jsonl"
    path.write_text(path.read_text().replace('"correct":true', '"correct":1'))
    path.write_text(path.read_text().replace('"correct":false', '"correct":0'))
    found = scores(study).disagreements
    assert len(found) == 21
    assert found[-1] == "answers scored again: 4 more disagreements"


def test_reports_are_added_up() -> None:
    one = ValidationReport((Check("a", 1), Check("b", 2)), ("x",))
    two = ValidationReport((Check("b", 3),), ("y",))
    assert merge([one, two]) == ValidationReport((Check("a", 1), Check("b", 5)), ("x", "y"))
