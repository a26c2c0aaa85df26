"""Writes a whole synthetic evidence folder: two arms, the reference, 24 cases, hostile answers.

Run as a program it writes the folder, its closing record and the report made from them:
`python make_evidence.py FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.decide import decide
from harness.measuring.measurements import read_measurements
from harness.measuring.results import results
from harness.plan import load_plan
from harness.prepared import Prepared
from harness.receipts import EvaluateReceipt, Receipt, StageName, TrainReceipt
from harness.results import Predicted, Results
from harness.strict import Model, load_file
from tests.unit.report.receipt_values import (
    ARMS,
    FINAL_LOSS,
    MODELS,
    RUN,
    UPDATES,
    decide_receipt,
    digest,
    rank_receipt,
    receipts,
)
from tests.unit.report.study_values import RETENTION, closing_value, plan_value, prepared_value
from trainer import contract

HOSTILE = (
    "</script><script>window.owned = 1</script>",
    '<img src=x onerror="window.owned = 1"> <svg onload=window.owned=1>',
    "safe \u202egnp.exe\u202c \u2066x\u2069 zero\u200bwidth \u00ad",
    "red \x1b[31mtext\x1b[0m \x1b]0;title\x07 bell\x07 \x9b2J",
    "nul \x00 here, return\r, \u2028 \x7f \x85",
    "\ud800 lone, \\udc80 from bytes",
    '{"total": 1' + "0" * 400 + "}",
    "x" * 32768,
    "-->]]></pre></body><!-- {{ 7 * 7 }} {% raw %} &lt;b&gt;",
    "\n\n  leading newlines\tand a tab\n\nZ\u0351\u036b\u0343\u036a\u0302",
    "javascript:window.owned=1 \u0634\u0643\u0631\u0627 123 \u05d0\u05d1\u05d2",
    "",
)


def write_evidence(folder: Path, *, closing: bool = True, cases: int = 24) -> Path | None:
    """Write the archive's files under `folder`; returns where the closing record is."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = plan_value(cases)
    contract.write_json(folder / "plan.json", plan)
    plan_hash = contract.hash_of(plan)
    contract.write_json(folder / "prepared.json", prepared_value(plan_hash, cases))
    questions = [_question(i) for i in range(cases)]
    _lines(folder / "inputs/test.answers.jsonl", questions)
    scores = {model: [_score(model, i, q) for i, q in enumerate(questions)] for model in MODELS}
    for model, rows in scores.items():
        _lines(folder / f"models/{model}/scores.jsonl", rows)
        answers = [{"id": r["id"], "tokens": [1, 2], "stopped": "end"} for r in rows]
        _lines(folder / f"models/{model}/answers-test.jsonl", answers)
        _lines(folder / f"models/{model}/retention-passages.jsonl", _retention(model))
    for arm, workers in ARMS.items():
        for rank in range(workers):
            _lines(folder / f"arms/{arm}/losses-{rank}.jsonl", _losses(arm))
            _json(folder / f"arms/{arm}/receipt-{rank}.json", rank_receipt(arm, rank))
    made = {receipt.stage: receipt for receipt in receipts(plan_hash)}
    found = _results(folder, made)
    _json(folder / "results.json", found)
    made["decide"] = decide_receipt(plan_hash, found)
    for stage, receipt in made.items():
        _json(folder / f"receipts/{stage}.json", receipt)
    contract.write_json(folder / "development.json", [
        {"run": "develop-1", "plan": "two-workers", "started_utc": "2026-11-28T10:00:00.000000Z",
         "models": [{"name": "single", "overall": {"correct": 5, "cases": 8}, "seconds": 4.0}]},
    ])  # fmt: skip
    contract.write_json(folder / "commits.json", [
        {"what": "plan and prepared inputs", "commit": "ab" * 20, "branch": f"harness/{RUN}"},
        {"what": "selection", "commit": "cd" * 20, "branch": f"harness/{RUN}"},
    ])  # fmt: skip
    if not closing:
        return None
    path = folder.parent / f"{folder.name}-closing.json"
    contract.write_json(path, closing_value())
    return path


def _question(i: int) -> dict[str, Any]:
    family = ("lookup", "sort")[i % 2]
    table = "\n".join(
        f"{chr(65 + r)}{i:03d} | {(7 * i + 13 * r) % 90 + 10} | open" for r in range(4)
    )
    prompt = f"Records:\n{table}\n\nAnswer with one JSON object. Task: {family} number {i}."
    expected: dict[str, Any] = {"value": (7 * i) % 90 + 10}
    if family == "sort":
        expected = {"ids": [f"{chr(65 + r)}{i:03d}" for r in range(4)]}
    return {
        "id": digest(f"case {i}"), "family": family, "wording": (i // 2) % 4, "prompt": prompt,
        "expected": expected,
    }  # fmt: skip


def _score(model: str, i: int, question: dict[str, Any]) -> dict[str, Any]:
    skill = {"reference": 6, "single": 1, "pair": 1}[model]
    correct = (i + (model == "pair")) % (7 if skill == 1 else skill) != 0
    correct = correct if skill == 1 else not correct
    text = contract.canonical(question["expected"]).decode()
    valid = True
    if not correct:
        text = HOSTILE[(i - i // 6 - 1) % len(HOSTILE)] if model != "single" else '{"value": 0}'
        valid = model == "single"
    return {
        "id": question["id"], "role": "test", "family": question["family"],
        "wording": question["wording"], "correct": correct, "valid_json": valid,
        "reason": "correct" if correct else "wrong-value" if valid else "not-json",
        "text": text.encode("utf-8", "backslashreplace").decode(),
    }  # fmt: skip


def _retention(model: str) -> list[dict[str, Any]]:
    shift = {"reference": 0.0, "single": 0.012, "pair": 0.004}[model]
    return [
        {
            "id": digest(f"passage {i}"),
            "loss": 3.1 + 0.05 * i + shift * (1 + (i % 3) / 4),
            "targets": 90,
        }
        for i in range(RETENTION)
    ]


def _results(folder: Path, made: Mapping[StageName, Receipt]) -> Results:
    """results.json as decide would write it."""
    plan = load_plan(folder / "plan.json").plan
    prepared = load_file(Prepared, folder / "prepared.json")
    train, evaluate = made["train"], made["evaluate"]
    assert isinstance(train, TrainReceipt)
    assert isinstance(evaluate, EvaluateReceipt)
    measured = read_measurements(folder, plan, train, evaluate, prepared)
    return results(
        plan=plan, prepared=prepared, run=RUN, measurements=measured,
        decisions=decide(plan, measured), stages={s: r.seconds for s, r in made.items()},
        predicted=(
            Predicted(what="train single", source="declared", predicted_s=40.0, observed_s=31.5),
            Predicted(what="train pair", source="no trial", observed_s=24.25),
        ),
        inputs={"train": digest("receipt train")}, not_run=("serve",),
        limits=("Both workers share one computer, so speed says nothing about networks.",),
    )  # fmt: skip


def _losses(arm: str) -> list[dict[str, Any]]:
    first, last = 4.2, FINAL_LOSS[arm]
    rows = []
    for update in range(1, UPDATES + 1):
        share = (update - 1) / (UPDATES - 1)
        loss = last + (first - last) * (1 - share) ** 2
        rows.append({
            "update": update, "loss": loss, "local_loss_sum": loss * 64, "weighted_targets": 64.0,
            "lr": 0.001, "grad_norm": 1.0, "seconds": 0.2, "exchange_seconds": 0.0,
            "sent_bytes": 0, "tokens": 1280,
        })  # fmt: skip
    return rows


def _json(path: Path, value: Model) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    contract.write_json(path, value.to_json())


def _lines(path: Path, rows: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    contract.write_lines(path, rows)


def main(folder: Path, cases: int) -> None:
    """Write the evidence and its report under `folder`."""
    from harness.report import build_report, load_evidence

    closing = write_evidence(folder / "archive", cases=cases)
    build_report(load_evidence(folder / "archive", closing)).write(folder / "report")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 24)
