"""The flip floor: one candidate answers again in batches of another size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.receipts import EvaluateReceipt
from harness.results import Results
from harness.strict import load_file
from tests.study.conftest import MakeDesk
from tests.toy_plan import PLAN, toy_after

SPOIL = """
if task == "evaluate" and recipe["batch"] == 3:
    path = out / "answers-test.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    right = [row for row in rows if len(row["tokens"]) > 2]
    right[0].update(tokens=list(b"{}"), stopped="end")
    path.write_text("".join(json.dumps(row) + chr(10) for row in rows))
"""
"""In batches of three a right answer becomes a wrong one."""


def test_a_flip_by_batch_size_stands_beside_the_differences(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    floor = {"candidate": "single", "batch": 3}
    desk = make_desk(
        trainer=toy_after(tmp_path, SPOIL),
        evaluation={**PLAN["evaluation"], "flip_floor": floor},
    )
    done = desk.run()
    assert done.code == 0, done.err
    found = load_file(Results, desk.latest / "results.json").flip_floor
    assert found is not None
    assert (found.candidate, found.batch, found.cases) == ("single", 3, 16)
    assert (found.gained, len(found.lost)) == ((), 1)
    receipt = load_file(EvaluateReceipt, desk.latest / "receipts" / "evaluate.json")
    assert receipt.floor is not None
    assert receipt.floor.rank.model_root == receipt.models[1].rank.model_root
    report: dict[str, Any] = json.loads((desk.latest / "report" / "report.json").read_bytes())
    row = report["tables"]["contrasts"]["rows"][-1]
    assert row["header"] == "flip floor"
    assert [cell["value"] for cell in row["cells"][:2]] == [0, 1]
    assert "changed in 1 of 16 cases" in report["tables"]["decisions"]["note"]
    checked = desk.harness("verify", str(desk.latest))
    assert checked.code == 0, checked.err


def test_a_floor_of_the_same_batch_or_of_no_arm_is_refused(make_desk: MakeDesk) -> None:
    floor = {"candidate": "third", "batch": 8}
    desk = make_desk(evaluation={**PLAN["evaluation"], "flip_floor": floor})
    done = desk.harness("check", str(desk.plan))
    assert done.code == 2
    said = done.out + done.err
    assert "flip_floor/candidate" in said
    assert "flip_floor/batch" in said
