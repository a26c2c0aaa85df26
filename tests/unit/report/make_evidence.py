"""Writes a whole synthetic evidence folder: two arms, the reference, 24 cases, hostile answers.

Run as a program it writes the folder, its closing record and the report made from them:
`python make_evidence.py FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from receipt_values import (
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

from harness.decide import decide
from harness.measuring.measurements import read_measurements
from harness.measuring.results import results
from harness.plan import load_plan
from harness.prepared import Prepared
from harness.receipts import EvaluateReceipt, Receipt, StageName, TrainReceipt
from harness.results import Predicted, Results
from harness.strict import Model, load_file
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
RETENTION = 6


def write_evidence(folder: Path, *, closing: bool = True, cases: int = 24) -> Path | None:
    """Write the archive's files under `folder`; returns where the closing record is."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = plan_value(cases)
    contract.write_json(folder / "plan.json", plan)
    plan_hash = contract.hash_of(plan)
    contract.write_json(folder / "prepared.json", _prepared(plan_hash, cases))
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


def plan_value(cases: int = 24) -> dict[str, Any]:
    """A plan with two arms, two families, four decisions."""

    def arm(name: str, workers: int, exchange: str) -> dict[str, Any]:
        return {
            "name": name, "corpus": "clean", "workers": workers, "microbatch": 4,
            "exchange": {"kind": exchange}, "preserve": "weights", "attempts": 2,
            "limits": {"seconds": 600, "traffic_gb": 5.0},
        }  # fmt: skip

    def decision(name: str, claim: str, statistic: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "claim": claim, "statistic": statistic, **more}

    z = 2.576
    return {
        "schema": "harness/plan/1",
        "name": "two-workers",
        "question": "Do two workers that share dense gradients learn the tasks as well as one, and "
        "do they finish sooner?",
        "seed": "two-workers-1",
        "trainer": {"kind": "bundled"},
        "environment": "as-found",
        "model": {"kind": "trainer"},
        "tokenizer": {"kind": "model"},
        "chat": {"form": "chatml"},
        "data": {
            "tasks": {
                "families": ["lookup", "sort"], "rows": 4, "absent_every": 5,
                "train_wordings": [0, 1], "test_wordings": [0, 1, 2, 3],
            },
            "roles": {"train_tasks": 64, "train_replay": 0, "development": 8, "test": cases},
            "retention": [
                {"name": "passages", "source": {"kind": "passages"}, "count": RETENTION}
            ],
            "weights": {"task": 1.0, "replay": 1.0},
            "exposed": [{"role": "retention", "reason": "the passages come with Harness"}],
        },
        "recipe": {
            "updates": UPDATES, "global_batch": 8, "context_tokens": 512,
            "optimizer": {
                "kind": "adamw", "lr": 0.001, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8,
                "weight_decay": 0.0,
            },
            "schedule": {"kind": "constant", "warmup_updates": 2},
        },
        "arms": [arm("single", 1, "none"), arm("pair", 2, "dense")],
        "evaluation": {"max_new_tokens": 64, "batch": 8},
        "decisions": [
            decision("learns", "One worker gains at least 20 points over the untrained model.",
                     "accuracy-difference", candidate="single", reference="reference",
                     bound="lower", margin=0.2, z=z),
            decision("keeps-up", "Two workers are at most 3 points worse than one.",
                     "accuracy-difference", candidate="pair", reference="single", bound="lower",
                     margin=-0.03, z=z),
            decision("retains", "Two workers lose less than 0.02 nats on the passages.",
                     "retention-difference", candidate="pair", reference="reference",
                     bound="upper", margin=0.02, z=z, probes="passages"),
            decision("faster", "The whole process of two workers is 1.1 times faster.",
                     "speed-ratio", candidate="pair", reference="single", bound="at-least",
                     margin=1.1, timer="process", exploratory=True),
        ],
        "hosts": {"local": {"count": 2}},
        "budget": {
            "ceiling_usd": "5.00", "allowance_usd": "0", "deadline_s": 7200,
            "traffic_gb_per_host": 10.0, "retention_days": 0, "attempts": 1,
        },
        "limits": ["A model of this size shows that the machinery works and little else."],
    }  # fmt: skip


def closing_value() -> dict[str, Any]:
    """A closing record of a local run."""
    line = {
        "what": "host-0 g6e.2xlarge", "quantity": "1343.23", "unit": "s",
        "unit_price_usd": "0.00062278", "sku": "ABCDEF123456", "price_date": "2026-09-01",
        "bound_usd": "0.8365",
    }  # fmt: skip
    return {
        "schema": "harness/closing/1", "plan": "two-workers", "run": RUN,
        "archive": {
            "sha256": digest("archive"), "bytes": 1203160,
            "locator": "runs/store/4a/" + digest("archive"),
        },
        "preservation": {
            "objects": 31, "bytes": 48123456, "reader_pid": 4242,
            "reader": "this computer, another process", "lost": [],
        },
        "release": {"basis": "preserved", "why": ""},
        "ended": ["host-0: no process, secret or temporary file is left.", "host-1: the same."],
        "residue": [],
        "resources": {
            "schema": "harness/resources/1", "fleet": "local-2f9c", "fleet_kind": "local",
            "studies": [RUN], "attempts": 1,
            "hosts": [
                {"host": f"host-{i}", "type": "local", "launched_utc": "2026-11-29T20:00:00.000000Z",
                 "ended_utc": "2026-11-29T20:31:00.000000Z", "seconds": 1860.0} for i in range(2)
            ],
            "lines": [line], "allowance_usd": "0", "total_bound_usd": "0.8365",
            "ceiling_usd": "5.00",
            "deadlines": ["inner: watchdog 4199 armed, read back", "outer: not applicable"],
            "residue": [], "preservation_sha256": digest("preserve"), "state": "final",
            "note": "Nothing was billed on this computer; one line stands as an example.",
        },
        "stages": {"seal": 0.8, "preserve": 2.25, "release": 0.01, "terminate": 1.5},
    }  # fmt: skip


def _prepared(plan_hash: str, cases: int) -> dict[str, Any]:
    counts = {"documents": 128, "tokens": 20480, "targets": 2048, "weighted_targets": 2048.0}
    return {
        "schema": "harness/prepared/1", "plan": "two-workers", "plan_hash": plan_hash,
        "identity": digest("identity"), "files": [], "source_sha256": digest("source"),
        "trainer_sha256": digest("trainer"), "tokenizer_sha256": digest("tokenizer"),
        "seed_model": {"files": [], "parameter_root": digest("root reference"), "parameters": 81920},
        "arms": {arm: counts for arm in ARMS}, "roles": {"train": 64, "test": cases},
        "damaged": 0, "longest_tokens": 211, "end_tokens": [2], "exposure": {}, "notes": [],
    }  # fmt: skip


def _question(i: int) -> dict[str, Any]:
    family = ("lookup", "sort")[i % 2]
    table = "\n".join(f"{chr(65 + r)}{i:03d} | {(7 * i + 13 * r) % 90 + 10} | open" for r in range(4))
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
        text = HOSTILE[(i + len(model)) % len(HOSTILE)] if model != "single" else '{"value": 0}'
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
        {"id": digest(f"passage {i}"), "loss": 3.1 + 0.05 * i + shift * (1 + (i % 3) / 4), "targets": 90}
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
            Predicted(what="train single", source="probe trials", predicted_s=40.0, observed_s=31.5),
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
