"""Evidence is read strictly; a file that is absent means that its stage did not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.receipts import TrainReceipt
from harness.report import Evidence, build_report, load_evidence
from tests.unit.report.make_evidence import HOSTILE, write_evidence


def test_everything_that_was_written_is_there(evidence: Evidence) -> None:
    assert evidence.models == ("reference", "single", "pair")
    assert len(evidence.cases) == 24
    assert all(set(case.answers) == set(evidence.models) for case in evidence.cases)
    assert [len(points) for points in evidence.losses.values()] == [16, 16]
    assert evidence.receipt(TrainReceipt) is not None
    assert set(evidence.environments) == {"host-0", "host-1"}
    assert len(evidence.development) == 1
    assert "results.json" in evidence.files


def test_hostile_answers_come_through_unchanged(evidence: Evidence) -> None:
    texts = {answer.text for case in evidence.cases for answer in case.answers.values()}
    wanted = {h.encode("utf-8", "backslashreplace").decode() for h in HOSTILE}
    assert len(wanted & texts) > len(wanted) // 2


def test_limits_are_said_once(evidence: Evidence) -> None:
    assert len(set(evidence.limits)) == len(evidence.limits)
    assert any("used before" in sentence for sentence in evidence.limits)


@pytest.mark.parametrize("name", ["plan.json", "prepared.json", "results.json"])
def test_what_must_be_there_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(BadInput, match=name):
        load_evidence(copy)


def test_a_folder_of_three_files_gives_a_report(copy: Path) -> None:
    for path in sorted(copy.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        elif path.name not in ("plan.json", "prepared.json", "results.json"):
            path.unlink()
    files = build_report(load_evidence(copy), raster=False).files
    assert b"not run" in files["report.json"]
    assert set(files) >= {"index.html", "answers.html", "report.json"}


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("models/single/scores.jsonl", b'{"id": 1}', "scores.jsonl line 25"),
        ("models/single/scores.jsonl", b'{"id": "a", "id": "b"}', "appears twice"),
        ("models/pair/retention-passages.jsonl", b'{"id": "x", "loss": NaN, "targets": 1}', "NaN"),
        ("arms/pair/losses-0.jsonl", b'{"update": 17, "loss": 1e999}', "out of range"),
        ("inputs/test.answers.jsonl", b'{"id": "x", "family": 3}', "family"),
        ("inputs/test.answers.jsonl", b"\xff\xfe", "UTF-8"),
    ],
)
def test_a_wrong_line_is_one_sentence(copy: Path, name: str, line: bytes, said: str) -> None:
    path = copy / name
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(BadInput, match=said):
        load_evidence(copy)


def test_a_case_that_is_scored_twice_is_refused(copy: Path) -> None:
    path = copy / "models/single/scores.jsonl"
    first = path.read_bytes().partition(b"\n")[0]
    path.write_bytes(path.read_bytes() + first + b"\n")
    with pytest.raises(BadInput, match="twice"):
        load_evidence(copy)


def test_without_a_closing_record_the_report_says_so(tmp_path: Path) -> None:
    assert write_evidence(tmp_path / "archive", closing=False) is None
    page = build_report(load_evidence(tmp_path / "archive"), raster=False).files["index.html"]
    assert b"there is no closing record" in page
    assert b"made without a closing record" in page


def test_a_closing_record_of_another_schema_is_refused(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "closing.json").write_text('{"schema": "harness/closing/9"}')
    with pytest.raises(BadInput, match="schema"):
        load_evidence(copy, tmp_path / "closing.json")
