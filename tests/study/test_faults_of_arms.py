"""Workers that die, hang or never end: counted attempts, kept logs, a resumable run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness.onhost import deadline
from harness.rank_bodies import TrainBody, body_of
from harness.receipts import TrainReceipt
from harness.strict import load_file
from tests.study.conftest import Desk, MakeDesk
from tests.toy_plan import PLAN, toy_with


def as_from_a_terminal() -> None:
    """A shell's background job would hand an ignored Ctrl-C down."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(desk: Desk) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness", "run", str(desk.plan), "--local"],
        cwd=desk.folder, env=desk.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=as_from_a_terminal,
    )  # fmt: skip


def wait_for(path_of: str, desk: Desk, limit_s: float = 300) -> Path:
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        found = sorted(desk.runs.glob(path_of))
        if found:
            return found[0]
        time.sleep(0.02)
    raise AssertionError(f"{path_of} never appeared")


def pid_of(started: Path) -> int:
    return int(json.loads(started.read_text())["pid"])


def alive(pid: int) -> bool:
    """Runs; a process that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_killed_rank_is_a_new_attempt_with_its_log(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(trainer=toy_with(tmp_path, TOY_UPDATE_SECONDS="0.4"))
    process = start(desk)
    job = "toy/2*/fleet/hosts/host-1/jobs/train.pair.1/started.json"
    os.kill(pid_of(wait_for(job, desk)), signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    pair = train.arms[1]
    assert [attempt.outcome for attempt in pair.attempts] == ["failed", "done"]
    assert "host-1: killed by signal 9" in pair.attempts[0].reason
    assert len(pair.attempts[0].logs) == 2
    assert train.arms[0].attempts[0].outcome == "done"


def test_an_arm_that_always_fails_stops_the_run_and_says_how_to_go_on(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(trainer=toy_with(tmp_path, TOY_FAULT="exit:0:2"))
    done = desk.run()
    assert done.code == 4, done.err
    assert "failed 2 of 2 attempts" in " ".join(done.err.split())
    assert "--abandon" in done.err
    given_up = desk.run("--abandon", "the toy is broken on purpose")
    assert given_up.code == 0, given_up.err
    receipts = {path.stem for path in (desk.latest / "receipts").iterdir()}
    assert {"release", "terminate"} <= receipts
    seen = deadline.state(desk.latest / "fleet")
    assert (seen["status"], alive(seen["pid"])) == ("disarmed", False), "no watchdog is left"
    assert desk.run().code == 3, "an abandoned run is not quietly begun again"


def test_siblings_of_a_failed_rank_end_at_once(
    make_desk: MakeDesk, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pair_first = PLAN["arms"][::-1]
    desk = make_desk(trainer=toy_with(tmp_path, TOY_UPDATE_SECONDS="30"), arms=pair_first)
    process = start(desk)
    other = wait_for("toy/2*/fleet/hosts/host-0/jobs/train.pair.1/started.json", desk, 120)
    victim = wait_for("toy/2*/fleet/hosts/host-1/jobs/train.pair.1/started.json", desk)
    began = time.monotonic()
    os.kill(pid_of(victim), signal.SIGKILL)
    wait_for("toy/2*/fleet/hosts/host-0/jobs/train.pair.1/exit.json", desk, 60)
    record_property("said", f"siblings ended after {time.monotonic() - began:.1f} s (aim 10)")
    assert not alive(pid_of(other))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Go on with: harness run" in " ".join((out + err).split())


def test_the_deadline_ends_an_arm_without_the_operator(make_desk: MakeDesk, tmp_path: Path) -> None:
    budget = {**PLAN["budget"], "deadline_s": 45}
    desk = make_desk(
        trainer=toy_with(tmp_path, TOY_UPDATE_SECONDS="15"), budget=budget,
        arms=PLAN["arms"][:1], decisions=[{**PLAN["decisions"][1], "candidate": "single"}],
        hosts={"local": {"count": 1, "device": "cpu", "threads": 1}},
    )  # fmt: skip
    process = start(desk)
    started = wait_for("toy/2*/fleet/hosts/host-0/jobs/train.single.1/started.json", desk)
    process.kill()
    process.communicate()
    pid = pid_of(started)
    wait_for("toy/2*/fleet/hosts/host-0/jobs/train.single.1/exit.json", desk, 150)
    assert not alive(pid)
    done = desk.run()
    assert done.code == 4, done.err
    assert "deadline" in done.err
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    assert train.arms == ()
    assert train.unfinished is not None
    (attempt,) = train.unfinished[0].attempts
    assert attempt.outcome == "stopped"
    assert "host-0: ended: " in attempt.reason
    assert "killed" not in attempt.reason, "by the watchdog or its supervisor, whichever was first"
    assert attempt.logs
    assert desk.harness("verify", str(desk.latest)).code == 0


def test_a_failed_attempt_is_continued_where_the_plan_stores_checkpoints(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    recipe = {**PLAN["recipe"], "checkpoints": {"every_updates": 1}}
    desk = make_desk(trainer=toy_with(tmp_path, TOY_UPDATE_SECONDS="1.5"), recipe=recipe)
    process = start(desk)
    wait_for("toy/2*/fleet/hosts/host-1/out/train.pair.1/checkpoint-1/update-1", desk, 240)
    job = "toy/2*/fleet/hosts/host-1/jobs/train.pair.1/started.json"
    os.kill(pid_of(wait_for(job, desk)), signal.SIGKILL)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    pair = train.arms[1]
    assert [attempt.outcome for attempt in pair.attempts] == ["failed", "done"]
    bodies = [body_of(TrainBody, rank) for rank in pair.ranks]
    assert bodies[0].resumed_from == bodies[1].resumed_from in (1, 2, 3)
    assert any("continued in attempt 2 from a checkpoint" in note for note in train.notes)
    assert bodies[0].updates == PLAN["recipe"]["updates"]
    single = body_of(TrainBody, train.arms[0].ranks[0])
    assert bodies[0].parameter_root == single.parameter_root, "the toy's arms end alike"


def test_a_checkpoint_comes_back_from_the_store_where_a_host_lost_it(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    recipe = {**PLAN["recipe"], "checkpoints": {"every_updates": 1, "off_host": True}}
    arms = [PLAN["arms"][1]]
    desk = make_desk(
        trainer=toy_with(tmp_path, TOY_UPDATE_SECONDS="3"), recipe=recipe, arms=arms
    )  # fmt: skip
    process = start(desk)
    host = "toy/2*/fleet/hosts/host-1"
    job = wait_for(f"{host}/jobs/train.pair.1/started.json", desk, 240)
    journal = wait_for("toy/2*/journal.jsonl", desk)
    ends = time.monotonic() + 60
    while '"checkpoint/pair/stored"' not in journal.read_text():
        assert time.monotonic() < ends and process.poll() is None
        time.sleep(0.05)
    os.kill(pid_of(job), signal.SIGKILL)
    shutil.rmtree(job.parents[2] / "out" / "train.pair.1" / "checkpoint-1")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    assert [attempt.outcome for attempt in train.arms[0].attempts] == ["failed", "done"]
    bodies = [body_of(TrainBody, rank) for rank in train.arms[0].ranks]
    assert bodies[0].resumed_from == bodies[1].resumed_from in (1, 2, 3)
    brought = job.parents[2] / "out" / "checkpoints.pair" / "checkpoint-1"
    assert [path.name for path in brought.iterdir()] == [f"update-{bodies[1].resumed_from}"]
