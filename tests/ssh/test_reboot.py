"""A host that boots again between two arms and in an arm; what was pushed is compared again.

The boot id is read from a stand-in file and processes are killed: no test can reboot a machine.
"""

from __future__ import annotations

import json
import os
import signal

import pytest

from harness.receipts import RecheckReceipt, TrainReceipt
from harness.strict import load_file
from tests.ssh.conftest import Rack
from tests.ssh.test_faults import ended, slow_desk, start, wait_for
from tests.study.conftest import Desk


def boot_again(rack: Rack, slot: int, letter: str) -> None:
    """Another boot id; connections and the jobs of that machine are gone."""
    machine = rack.machines[slot]
    (machine.folder / "boot_id").write_text(f"{letter * 8}-1111-1111-1111-111111111111\n")
    for started in (machine.work / "runs").glob(f"*/hosts/host-{slot}/jobs/*/started.json"):
        if not (started.parent / "exit.json").exists():
            known = json.loads(started.read_text())
            for name in ("supervisor_pid", "pid"):
                os.kill(int(known[name]), signal.SIGKILL)
    machine.stop()
    machine.start()


@pytest.fixture(scope="module")
def booted(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> tuple[Rack, Desk]:
    """host-1 boots while host-0 trains alone, loses a pushed file, and boots again in its arm."""
    rack = shared_rack
    desk = slow_desk(tmp_path_factory.mktemp("booted"), "0.5")
    process = start(rack, desk)
    wait_for(rack, 0, "jobs/train.single.1/started.json")
    lost = wait_for(rack, 1, "inputs/schedule.json")
    lost.unlink()
    boot_again(rack, 1, "2")
    wait_for(rack, 1, "jobs/train.pair.1/started.json")
    boot_again(rack, 1, "3")
    ended(process)
    return rack, desk


def test_what_a_boot_took_is_brought_again_and_said(booted: tuple[Rack, Desk]) -> None:
    _, desk = booted
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    single, pair = train.arms
    assert [line.observed for line in single.attempts[0].lines if line.check == "boot"] == [
        "the same boot"
    ]
    assert [each.outcome for each in single.attempts] == ["done"], "the idle host's boot cost none"
    first = {line.host: line for line in pair.attempts[0].lines if line.check == "boot" and line.ok}
    assert first["host-0"].observed == "the same boot"
    assert "another boot since it was provisioned" in first["host-1"].observed
    assert "compared" in first["host-1"].observed
    assert ", 0 bytes brought" not in first["host-1"].observed, "the lost file came back"
    said = [note for note in train.notes if "another boot" in note]
    assert said and said[0].startswith("host-1, arm 'pair', attempt 1")
    page = (desk.latest / "report" / "index.html").read_text()
    assert "another boot since it was provisioned" in page


def test_a_boot_in_an_arm_counts_as_an_attempt_with_its_reason(booted: tuple[Rack, Desk]) -> None:
    _, desk = booted
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    attempts = train.arms[1].attempts
    assert [each.outcome for each in attempts] == ["failed", "done"]
    assert "host-1: it booted again while the attempt ran" in attempts[0].reason


def test_the_checks_are_made_again_after_the_arms(booted: tuple[Rack, Desk]) -> None:
    _, desk = booted
    again = load_file(RecheckReceipt, desk.latest / "receipts" / "recheck.json")
    seen = {(line.host, line.check) for line in again.lines}
    for host in ("host-0", "host-1"):
        assert {(host, "all-reduce"), (host, "weighted update")} <= seen
        assert (host, "allowance exceeded on lo") in seen
    assert all(line.ok for line in again.lines)
    assert "Checked again after the arms" in (desk.latest / "report" / "index.html").read_text()


def test_read_ahead_is_read_and_left_on_a_users_machine(booted: tuple[Rack, Desk]) -> None:
    _, desk = booted
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    for arm in train.arms:
        lines = [each for each in arm.attempts[-1].lines if each.check == "read-ahead in training"]
        assert len(lines) == len(arm.ranks)
        assert all("left as it is: the machine is not ours" in each.observed for each in lines)
        assert [each.check for each in arm.lines] == ["read-ahead in staging"]
