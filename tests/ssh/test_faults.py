"""What hosts do to a run: ranks, sshd, links and operators that die; attempts are counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness.receipts import TerminateReceipt, TrainReceipt
from harness.strict import load_file
from tests.ssh.conftest import Rack
from tests.study.conftest import Desk, make_desk_in
from tests.toy_plan import toy_plan, toy_with

LIMIT_S = 240.0


def start(rack: Rack, desk: Desk) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness", "run", str(desk.plan), "--hosts",
         str(rack.folder / "hosts.json")],
        cwd=desk.folder, env=desk.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for(rack: Rack, slot: int, name: str) -> Path:
    """A file of a job on a machine, once it is there."""
    ends = time.monotonic() + LIMIT_S
    while time.monotonic() < ends:
        found = sorted((rack.machines[slot].work / "runs").glob(f"*/hosts/host-{slot}/{name}"))
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"{name} never appeared on host-{slot}")


def pid_of(started: Path) -> int:
    return int(json.loads(started.read_text())["pid"])


def ended(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=LIMIT_S)
    assert "Traceback" not in out + err, err
    assert process.returncode == 0, err
    return " ".join(err.split())


def attempts(desk: Desk) -> dict[str, list[str]]:
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    return {arm.arm: [each.outcome for each in arm.attempts] for arm in train.arms}


def slow_desk(tmp_path: Path, seconds: str = "1", **changes: Any) -> Desk:
    trainer = toy_with(tmp_path, TOY_UPDATE_SECONDS=seconds)
    return make_desk_in(tmp_path, trainer=trainer, **changes)


PAIR_ONLY: dict[str, Any] = {
    "arms": [toy_plan()["arms"][1]],
    "decisions": [each for each in toy_plan()["decisions"] if each["candidate"] == "pair"],
}


def test_a_killed_rank_and_a_killed_sshd_cost_one_attempt(rack: Rack, tmp_path: Path) -> None:
    """The rank is killed: its sibling ends, an attempt is counted. sshd is killed in the next
    attempt and comes back: nothing is counted, the job has gone on."""
    desk = slow_desk(tmp_path, **PAIR_ONLY)
    process = start(rack, desk)
    os.kill(pid_of(wait_for(rack, 1, "jobs/train.pair.1/started.json")), signal.SIGKILL)
    began = time.monotonic()
    sibling = wait_for(rack, 0, "jobs/train.pair.1/exit.json")
    assert time.monotonic() - began < LIMIT_S
    wait_for(rack, 1, "jobs/train.pair.2/started.json")
    rack.machines[1].stop()
    time.sleep(2)
    rack.machines[1].start()
    ended(process)
    assert attempts(desk) == {"pair": ["failed", "done"]}
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    first = train.arms[0].attempts[0]
    assert "host-1: killed by signal 9" in first.reason
    assert json.loads(sibling.read_text())["exit_code"] != 0
    names = {each.name.rsplit("/", 1)[1] for each in first.logs}
    assert {f"train.pair.1-host-{i}.log" for i in (0, 1)} <= names, "every log is kept"
    assert any(name.endswith(".samples.jsonl") for name in names)


def test_an_operator_killed_in_an_arm_finds_it_again_and_trains_once(
    rack: Rack, tmp_path: Path
) -> None:
    desk = slow_desk(tmp_path, **PAIR_ONLY)
    process = start(rack, desk)
    started = wait_for(rack, 0, "jobs/train.pair.1/started.json")
    process.kill()
    process.communicate()
    before = pid_of(started)
    done = rack.run(desk)
    assert done.code == 0, done.err
    assert pid_of(started) == before
    assert attempts(desk) == {"pair": ["done"]}
    jobs = [p.parent.name for p in (rack.fleets(0)[0] / "hosts").glob("*/jobs/train.*/job.json")]
    assert jobs == ["train.pair.1"], "no second training"
    end = load_file(TerminateReceipt, desk.latest / "receipts" / "terminate.json")
    assert end.residue == ()


def test_other_hosts_than_the_run_was_begun_with_are_refused(rack: Rack, tmp_path: Path) -> None:
    desk = slow_desk(tmp_path, **PAIR_ONLY)
    process = start(rack, desk)
    wait_for(rack, 0, "jobs/train.pair.1/started.json")
    process.kill()
    process.communicate()
    refused = desk.run()
    assert refused.code == 3
    assert "begun on other hosts" in " ".join(refused.err.split())
    assert "--hosts" in refused.err
    shown = desk.harness("status")
    assert shown.code == 0 and "train.pair.1 on host-0" in shown.out
    log = desk.harness("logs", "pair", "0")
    assert log.code == 0, log.err
    _shell(rack, desk)
    given_up = rack.run(desk, "--abandon", "the test says so")
    assert given_up.code == 0, given_up.err
    wait_for(rack, 0, "jobs/train.pair.1/exit.json")


def _shell(rack: Rack, desk: Desk) -> None:
    """`harness ssh` becomes ssh with the pinned key; its input is the shell's."""
    shell = subprocess.run(
        [sys.executable, "-m", "harness", "ssh", "host-1"], cwd=desk.folder,
        env=desk.environment(), input="echo it is $SSH_CONNECTION\n", text=True,
        capture_output=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert shell.returncode == 0, shell.stderr
    assert f"{rack.machines[1].address} {rack.machines[1].port}" in shell.stdout
    none = desk.harness("ssh", "host-7")
    assert none.code == 2 and "host-7" in none.err


def test_a_traffic_cap_ends_the_arm_on_the_host(rack: Rack, tmp_path: Path) -> None:
    """One byte more than the cap on the interface ends the arm, with the cap in the sentence."""
    arm = {**toy_plan()["arms"][1], "attempts": 1,
           "limits": {"seconds": 300, "traffic_gb": 0.00000002}}  # fmt: skip
    desk = slow_desk(tmp_path, "3", arms=[arm], decisions=PAIR_ONLY["decisions"])
    done = rack.run(desk)
    assert done.code == 4, done.err
    assert "traffic cap of 10 bytes" in " ".join(done.err.split())
