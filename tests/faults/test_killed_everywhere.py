"""Killed with SIGKILL at three points of every journal entry, the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.journal import read_entries
from harness.plan import load_plan
from harness.receipts import RECEIPTS, TerminateReceipt, TrainReceipt
from harness.run import find_place
from harness.strict import load_file
from tests.toy_plan import toy_plan, write_plan

TOP = Path(__file__).parents[2]
KILLED = Path(__file__).with_name("killed.py")
MOST_KILLS = 400


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "HARNESS_CACHE": str(cache), "PYTHONPATH": str(TOP)}


def run_until_done(mode: str, folder: Path, plan: Path) -> int:
    """Call the command until it ends by itself; returns how often it was killed."""
    memory, runs = folder / "memory", folder / "runs"
    argv = [sys.executable, str(KILLED), mode, str(memory), str(plan), str(runs)]
    for kills in range(MOST_KILLS):
        done = subprocess.run(
            argv, env=environment(folder / "cache"), capture_output=True, text=True, check=False
        )
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr + done.stdout
            return kills
    raise AssertionError(f"still killed after {MOST_KILLS} runs")


@pytest.mark.parametrize("mode", ["intent", "effect", "torn"])
def test_a_study_killed_at_every_entry_ends_once_and_leaves_nothing(
    mode: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    plan = write_plan(tmp_path, toy_plan())
    kills = run_until_done(mode, tmp_path, plan)

    place = find_place(load_plan(plan), tmp_path / "runs")
    assert place is not None
    assert len(list((tmp_path / "runs" / "toy").glob("2*"))) == 1, "one run, not several"
    entries, whole = read_entries(place.folder / "journal.jsonl")
    assert whole == (place.folder / "journal.jsonl").stat().st_size
    keys = [(entry.kind, entry.key) for entry in entries if entry.kind != "note"]
    assert len(keys) == len(set(keys)), "an intent, outcome or receipt is there twice"
    intents = {key for kind, key in keys if kind == "intent"}
    assert intents == {key for kind, key in keys if kind == "outcome"}
    receipts = len(RECEIPTS)
    expected = len(intents) + (receipts if mode != "effect" else 0)
    said = f"{mode}: {kills} kills over {len(intents)} effects and {receipts} receipts"
    record_property("said", said)
    assert kills >= expected - 1

    train = load_file(TrainReceipt, place.folder / "receipts" / "train.json")
    for arm in train.arms:
        assert [attempt.outcome for attempt in arm.attempts] == ["done"], "trained exactly once"
    for host in (place.folder / "fleet" / "hosts").iterdir():
        started = [path.parent.name for path in host.glob("jobs/*/started.json")]
        assert len(started) == len(set(started))
    end = load_file(TerminateReceipt, place.folder / "receipts" / "terminate.json")
    assert end.residue == ()
    log = subprocess.run(
        ["git", "-C", str(tmp_path), "log", "--format=%s", f"harness/{place.record.run}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(log.stdout.splitlines()) == 2, "two commitments, none doubled"


def test_kills_do_not_change_what_is_trained(tmp_path: Path) -> None:
    roots = []
    for name, mode in (("calm", "none"), ("stormy", "effect")):
        folder = tmp_path / name
        folder.mkdir()
        plan = write_plan(folder, toy_plan())
        run_until_done(mode, folder, plan)
        place = find_place(load_plan(plan), folder / "runs")
        assert place is not None
        train = load_file(TrainReceipt, place.folder / "receipts" / "train.json")
        roots.append([arm.candidate.parameter_root for arm in train.arms])
    assert roots[0] == roots[1]
