"""Numbers are counted again, say where they come from, and disagree aloud."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.report import Evidence, ReportFiles, load_evidence
from harness.report.document import ReportDocument
from harness.report.figures import scale, wilson
from harness.report.numbers import numbers, report_value
from harness.strict import load
from trainer import contract


@pytest.fixture(scope="module")
def value(report: ReportFiles) -> Any:
    """report.json."""
    return json.loads(report.files["report.json"])


def test_report_json_is_canonical(report: ReportFiles, value: Any) -> None:
    assert report.files["report.json"] == contract.canonical(value) + b"\n"
    found = load(ReportDocument, report.files["report.json"], where="report.json")
    assert found.schema_ == "harness/report/1"
    assert all(
        len(row.cells) == len(table.columns) - 1
        for table in found.tables.values()
        for row in table.rows
        if not isinstance(row, str)
    )
    assert value["disagreements"] == []


def test_every_figure_says_where_it_came_from(value: Any) -> None:
    cells = list(_cells(value))
    assert len(cells) > 150
    assert all(cell["source"] for cell in cells)


def test_every_named_file_is_in_the_evidence(evidence: Evidence, value: Any) -> None:
    known = {*evidence.files, "closing.json", "declared", "no trial", "arms/single", "arms/pair"}
    known |= {f"receipt {stage}" for stage in evidence.receipts}
    for cell in _cells(value):
        for source in cell["source"].split(", "):
            assert re.sub(r"^[a-z]+: ", "", source) in known, source


def test_accuracy_is_counted_from_the_answers(evidence: Evidence, value: Any) -> None:
    table = _rows(value, "accuracy")
    for i, model in enumerate(evidence.models):
        right = sum(case.answers[model].correct for case in evidence.cases)
        assert table["all, correct"][i]["value"] == right
        assert table["all, accuracy"][i]["value"] == right / 24


def test_a_stage_that_did_not_run_is_not_run_and_never_zero(copy: Path) -> None:
    (copy / "receipts/train.json").unlink()
    (copy / "models/pair/scores.jsonl").unlink()
    results = contract.read_json(copy / "results.json")
    results.update(arms=[], decisions=[])
    results["stages"].pop("train")
    contract.write_json(copy / "results.json", results)
    found = load_evidence(copy)
    value = report_value(found, numbers(found))
    assert _rows(value, "stages")["train"][0]["value"] == "not run"
    assert _rows(value, "accuracy")["lookup"][2]["value"] == "not run"
    assert value["tables"]["execution"]["rows"].startswith("not run")
    assert value["verdict"]["outcome"] == "not run"
    assert "train" in value["not_run"]


def _tampered(change: Callable[[Any], None]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        results = contract.read_json(folder / "results.json")
        change(results)
        contract.write_json(folder / "results.json", results)

    return do


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r["models"][1]["overall"].update(correct=24), "single, correct answers: 20 of"),
        (lambda r: r["models"][2]["families"]["sort"].update(correct=12), "pair, family sort"),
        (lambda r: r["models"][2]["retention"].update(passages=3.0), "pair, retention passages"),
        (lambda r: r["models"][0]["held_out"].update(correct=0), "reference, held-out"),
        (lambda r: r["flips"][0]["lost"].clear(), "single against reference, cases lost"),
        (lambda r: r["arms"][0].update(final_loss=0.1), "arm single, final_loss"),
        (lambda r: r["arms"][1]["timers"].update(process=1.0), "arm pair, timers, process"),
        (lambda r: r["decisions"][1].update(passed=True), "decision keeps-up, passed"),
        (lambda r: r["decisions"].pop(), "decision faster is in the evidence"),
        (lambda r: r.update(plan_hash="0" * 64), "plan hash"),
        (lambda r: r.update(identity="0" * 64), "identity"),
    ],
)
def test_a_changed_result_is_listed(copy: Path, change: Callable[[Any], None], said: str) -> None:
    _tampered(change)(copy)
    found = numbers(load_evidence(copy)).disagreements
    assert any(sentence.startswith(said) for sentence in found), found


def test_a_changed_answer_is_listed(copy: Path) -> None:
    path = copy / "models/single/scores.jsonl"
    rows = contract.read_lines(path)
    row = next(row for row in rows if row["correct"])
    row.update(correct=False, reason="wrong-value")
    contract.write_lines(path, rows)
    found = numbers(load_evidence(copy)).disagreements
    assert any("single, correct answers: 19 of 24" in sentence for sentence in found)


def test_a_changed_rank_receipt_is_listed(copy: Path) -> None:
    path = copy / "arms/pair/receipt-1.json"
    contract.write_json(path, {**contract.read_json(path), "threads": 64})
    assert any("receipt-R.json" in s for s in numbers(load_evidence(copy)).disagreements)


def test_a_missing_answer_is_listed(copy: Path) -> None:
    path = copy / "models/pair/scores.jsonl"
    contract.write_lines(path, contract.read_lines(path)[:-1])
    assert "pair answered 23 of 24 test cases" in numbers(load_evidence(copy)).disagreements


def test_a_loss_that_was_not_finite_has_no_mean(copy: Path) -> None:
    path = copy / "models/pair/retention-passages.jsonl"
    rows = contract.read_lines(path)
    rows[0]["loss"] = None
    contract.write_lines(path, rows)
    found = load_evidence(copy)
    table = _rows(report_value(found, numbers(found)), "retention")
    assert table["passages, mean loss"][2]["value"] == "not run"
    assert table["change"][2]["value"] == "not run"


def test_the_verdict_leaves_out_exploratory_decisions(evidence: Evidence) -> None:
    found = numbers(evidence)
    assert found.verdict == "2 of 3 declared decisions passed; failed: keeps-up."
    assert found.outcome == "fail"


def test_an_abandoned_run_says_why(evidence: Evidence) -> None:
    assert evidence.closing is not None
    release = evidence.closing.release.model_copy(update={"basis": "abandoned", "why": "disk gone"})
    closing = evidence.closing.model_copy(update={"release": release})
    assert any("disk gone" in s for s in numbers(replace(evidence, closing=closing)).limits)


def test_weights_that_were_given_up_are_no_lost_evidence(evidence: Evidence) -> None:
    assert evidence.closing is not None and evidence.closing.preservation is not None
    kept = evidence.closing.preservation
    assert "not_kept" not in kept.to_json(), "older evidence stays the same bytes"
    why = "the weights of 1 candidate(s) are not kept: no room; all else was: 9 objects read back"
    release = evidence.closing.release.model_copy(update={"basis": "abandoned", "why": why})
    preservation = kept.model_copy(update={"not_kept": ("pair: parameter root abc, 5 bytes",)})
    closing = evidence.closing.model_copy(update={"release": release, "preservation": preservation})
    found = numbers(replace(evidence, closing=closing))
    assert f"By an explicit abandonment {why}." in found.limits
    assert not any("before it was proved preserved" in sentence for sentence in found.limits)
    rows = {row.header: row.cells[0].value for row in found.tables["preservation"].rows}
    assert rows["weights not kept"] == "pair: parameter root abc, 5 bytes"


@pytest.mark.parametrize(
    ("correct", "cases", "low", "high"),
    [
        (0, 12, 0.0, 0.2425),
        (12, 12, 0.7575, 1.0),
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
    ],
)
def test_wilson_gives_published_limits(correct: int, cases: int, low: float, high: float) -> None:
    """The last two are of Newcombe, Statistics in Medicine 17 (1998) 857-872, table I."""
    assert wilson(correct, cases) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("low", "high"), [(0, 16), (0.92, 4.2), (3, 3), (0, 1e-9), (-5, 1e7)])
def test_an_axis_holds_its_values(low: float, high: float) -> None:
    start, end, ticks = scale(low, high)
    assert start <= low + 1e-12
    assert end >= high * (1 - 1e-9)
    assert 2 <= len(ticks) <= 9
    assert ticks == sorted(set(ticks))


def _cells(value: Any) -> Iterator[dict[str, Any]]:
    for table in value["tables"].values():
        if isinstance(table["rows"], list):
            for row in table["rows"]:
                assert row["source"]
                yield from row["cells"]


def _rows(value: Any, key: str) -> dict[str, list[dict[str, Any]]]:
    return {row["header"]: row["cells"] for row in value["tables"][key]["rows"]}
