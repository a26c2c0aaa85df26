"""A prepared folder, and outputs of an imagined model and arm, that may be tampered with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.exposure import build_ledger
from harness.inputs import prepare_inputs
from harness.scoring.answers import score
from harness.validation import ValidationReport
from tests.unit.inputs.small_plans import byte_tokenizer, save_tokenizer, small_plan
from trainer.contract import canonical, read_json, read_lines, write_json, write_lines

PLAN = small_plan()


class Study:
    """Folder `inputs`, `tokenizer.json`, and what a trainer wrote beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.inputs = folder, folder / "inputs"
        self.tokenizer = folder / "tokenizer.json"

    @classmethod
    def make(cls, folder: Path) -> Study:
        """Prepare, answer every second test case rightly, and train two workers."""
        path = save_tokenizer(folder)
        ledger = build_ledger("0" * 64, [])
        prepare_inputs(PLAN, folder, path, folder / "inputs", ledger=ledger, hub_endpoint=None)
        study = cls(folder)
        study.answer()
        study.train()
        return study

    def copy(self, folder: Path) -> Study:
        """The same study elsewhere."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Study(folder)

    def answer(self) -> None:
        """answers-test.jsonl, scores.jsonl and retention-prose.jsonl."""
        replies = ["{}", "no", '{"ids": [], "ids": []}', '{"total": 1e999}', "[1]"]
        answers, scores = [], []
        for number, known in enumerate(read_lines(self.inputs / "test.answers.jsonl")):
            right = canonical(known["expected"]).decode()
            text = replies[number // 2 % len(replies)] if number % 2 else right
            tokens = byte_tokenizer().encode(text).ids
            judged = score(text, known["expected"])
            answers.append({"id": known["id"], "tokens": tokens, "stopped": "end"})
            row = {key: known[key] for key in ("id", "family", "wording")}
            row |= {"correct": judged.correct, "valid_json": judged.valid_json}
            scores.append(row | {"role": "test", "reason": judged.reason})
        write_lines(self.folder / "answers-test.jsonl", answers)
        write_lines(self.folder / "scores.jsonl", scores)
        probes = read_lines(self.inputs / "retention.prose.jsonl")
        losses = [{"id": p["id"], "loss": 2.5, "targets": len(p["tokens"]) - 1} for p in probes]
        write_lines(self.folder / "retention-prose.jsonl", losses)

    def train(self) -> None:
        """losses-0.jsonl of the arm 'spoilt'."""
        rows = read_lines(self.inputs / "train.damaged.jsonl")
        lines: list[dict[str, Any]] = []
        for update in read_json(self.inputs / "schedule.json")["updates"]:
            drawn = [rows[number] for number in update]
            weighted = sum(row["weight"] * (b - a) for row in drawn for a, b in row["targets"])
            line = {"update": len(lines) + 1, "loss": 2.0, "local_loss_sum": 2.0 * weighted}
            line |= {"weighted_targets": weighted, "grad_norm": 1.0, "seconds": 0.5}
            line["lr"] = 5e-5 if not lines else 1e-4  # two updates of warm-up
            lines.append(line)
        write_lines(self.folder / "losses-0.jsonl", lines)

    def change(self, name: str, number: int, change: Callable[[Any], Any]) -> None:
        """Rewrite one line of a .jsonl file, or a whole .json file."""
        path = self.folder / name
        if path.suffix == ".json":
            write_json(path, change(read_json(path)))
            return
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows[number] = change(rows[number])
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def count(report: ValidationReport, name: str) -> int:
    """How often a check was made."""
    return sum(check.count for check in report.checks if check.name == name)
