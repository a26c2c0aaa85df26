"""The real trainer with a tiny model: torch, torchrun and gloo, killed in the middle of an arm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness.journal import read_entries
from harness.receipts import PreflightReceipt, TrainReceipt
from harness.results import Results
from harness.strict import load_file
from tests.study.conftest import Desk, MakeDesk, make_desk_in
from tests.toy_plan import PLAN

POWERSGD = {
    "kind": "powersgd",
    "rank": 4,
    "error_feedback": True,
    "residual": "averaged",
    "dense_updates": 2,
    "min_compression_rate": 2,
    "epsilon": 1e-8,
}


def real(**changes: Any) -> dict[str, Any]:
    """Changes of the toy plan that put the bundled trainer in."""
    single, pair = PLAN["arms"]
    recipe = {**PLAN["recipe"], "updates": 24}
    return {
        "trainer": {"kind": "bundled"},
        "arms": [single, {**pair, "exchange": POWERSGD}],
        "recipe": recipe,
        "data": {**PLAN["data"], "roles": {**PLAN["data"]["roles"], "test": 8}},
        "evaluation": {"max_new_tokens": 64, "batch": 8},
        **changes,
    }


def roots(desk: Desk) -> dict[str, str]:
    results = load_file(Results, desk.latest / "results.json")
    return {arm.name: arm.parameter_root for arm in results.arms}


def test_killed_in_the_middle_of_an_arm_it_goes_on_and_trains_once(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    calm = make_desk_in(tmp_path / "calm", **real())
    done = calm.run()
    assert done.code == 0, done.err

    desk = make_desk(**real())
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "run", str(desk.plan), "--local"],
        cwd=desk.folder, env=desk.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    beat = _in_the_middle(desk, "train.pair.1")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 0 < beat < 24, f"it was killed at update {beat}, not in the middle"
    again = desk.run()
    assert again.code == 0, again.err

    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    assert [len(arm.attempts) for arm in train.arms] == [1, 1]
    assert roots(desk) == roots(calm), "the kill changed what was trained"
    _looks_right(desk)


def _in_the_middle(desk: Desk, job: str) -> int:
    """Wait until a job's heartbeat says that some updates are done; returns how many."""
    ends = time.monotonic() + 240
    while time.monotonic() < ends:
        for path in desk.runs.glob(f"toy/2*/fleet/hosts/host-0/out/{job}/heartbeat-0.json"):
            done = json.loads(path.read_text()).get("done") or 0
            if done:
                return int(done)
        time.sleep(0.005)
    raise AssertionError("the arm never began")


def _looks_right(desk: Desk) -> None:
    results = load_file(Results, desk.latest / "results.json")
    single, pair = results.arms
    assert pair.ranks_agree
    assert pair.exchange_sent_bytes > 0
    assert single.exchange_sent_bytes == 0
    assert single.final_loss < single.first_loss
    timers = single.timers
    assert timers.update_sum is not None and timers.active is not None
    assert timers.active_plus_checkpoint is not None and timers.loop is not None
    assert timers.update_sum <= timers.active <= timers.active_plus_checkpoint <= timers.process
    assert results.distances[0].relative_l2 > 0
    preflight = load_file(PreflightReceipt, desk.latest / "receipts" / "preflight.json")
    checks = {line.check for line in preflight.lines}
    assert {"all-reduce", "weighted update", "link to host-0", "clock", "disk"} <= checks
    assert all(line.ok for line in preflight.lines)
    entries, _ = read_entries(desk.latest / "journal.jsonl")
    assert not [entry for entry in entries if entry.key == "torn-line"]
