"""The local fleet: real deadlines, an end that ends everything, a search for the rest."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import Waiting
from harness.fleet.local import LocalFleet
from harness.fleet.protocol import FleetSource
from harness.hosts.protocol import Job
from harness.onhost import deadline
from trainer import contract


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def job(name: str, *argv: str) -> Job:
    return Job(id=name, argv=argv, folder=".", environment={}, ends_by_utc=soon(60))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LocalFleet]:
    made = LocalFleet(tmp_path, 2, f"fleet-{tmp_path.name}", soon(60))
    yield made
    made.end()


def test_it_is_a_fleet_of_hosts_in_slot_order(fleet: LocalFleet) -> None:
    seam: FleetSource = fleet
    assert seam.kind == "local"
    assert [host.name for host in seam.hosts()] == ["host-0", "host-1"]
    assert len({host.work for host in seam.hosts()}) == 2


def test_both_deadlines_are_read_back(fleet: LocalFleet) -> None:
    inner, outer = fleet.deadlines()
    assert (inner.armed, inner.applies, inner.proof) == (False, True, "watchdog absent")
    assert (outer.armed, outer.applies) == (False, False)
    assert outer.proof.startswith("not applicable: ")
    fleet.arm_deadlines()
    fleet.arm_deadlines()
    inner, _ = fleet.deadlines()
    assert inner.armed and inner.at_utc == fleet.deadline_utc
    assert "heartbeat" in inner.proof


def test_another_deadline_is_refused_and_not_counted_as_armed(
    fleet: LocalFleet, tmp_path: Path
) -> None:
    fleet.arm_deadlines()
    other = LocalFleet(tmp_path, 2, fleet.id, soon(90))
    with pytest.raises(Waiting, match="never moves"):
        other.arm_deadlines()
    assert not other.deadlines()[0].armed


def test_a_killed_watchdog_is_not_armed_until_it_is_armed_again(fleet: LocalFleet) -> None:
    fleet.arm_deadlines()
    os.kill(deadline.state(fleet.folder)["pid"], signal.SIGKILL)
    while fleet.deadlines()[0].armed:
        time.sleep(0.01)
    assert fleet.deadlines()[0].proof.split(",")[0] in ("watchdog dead", "watchdog starting")
    fleet.arm_deadlines()
    assert fleet.deadlines()[0].armed


def test_at_the_deadline_jobs_end_and_no_new_one_runs(tmp_path: Path) -> None:
    fleet = LocalFleet(tmp_path, 2, f"fleet-{tmp_path.name}", soon(5))
    fleet.arm_deadlines()
    for host in fleet.hosts():
        host.start(job("j", "sleep", "100"))
    end = time.monotonic() + 90
    while deadline.state(fleet.folder)["status"] != "fired":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert [host.state("j").reason for host in fleet.hosts()] == ["deadline"] * 2
    fleet.hosts()[0].start(job("late", "touch", "late"))
    assert fleet.hosts()[0].read("late") == b""
    assert not fleet.deadlines()[0].armed
    fleet.end()
    assert fleet.residue() == ()


def test_residue_names_processes_and_sockets_and_end_removes_them(
    fleet: LocalFleet, tmp_path: Path
) -> None:
    fleet.arm_deadlines()
    first, second = fleet.hosts()
    first.start(job("j", "sh", "-c", "echo kept; exec sleep 98"))
    second.run(["sh", "-c", "setsid sleep 97 >/dev/null 2>&1 &"], timeout_s=10)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(f"{first.work}/s")
    Path(second.work, ".half.tmp").touch()
    bystander = subprocess.Popen(["sleep", "96"], env={"HARNESS_FLEET": "another"})
    try:
        words = " ".join(fleet.residue())
        for part in ("sleep 98", "sleep 97", "/s", ".half.tmp", "deadline"):
            assert part in words
        assert "sleep 96" not in words
        said = fleet.end()
        assert said[0].startswith("host-0: 1 job(s) seen, 1 ended now")
        assert fleet.residue() == ()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
    assert first.read("jobs/j/log") == b"kept\n"
    assert first.state("j").reason == "the fleet ended"
    assert deadline.state(fleet.folder)["status"] == "disarmed"
    fleet.end()


def test_end_also_ends_a_job_whose_supervisor_was_killed(fleet: LocalFleet) -> None:
    host, _ = fleet.hosts()
    host.start(job("j", "sleep", "95"))
    started = contract.read_json(Path(host.work) / "jobs/j/started.json")
    os.kill(started["supervisor_pid"], signal.SIGKILL)
    assert "sleep 95" in " ".join(fleet.residue())
    fleet.end()
    assert fleet.residue() == ()
    assert host.state("j").status == "lost"


def test_a_fleet_that_ended_is_not_armed_again(fleet: LocalFleet) -> None:
    fleet.arm_deadlines()
    fleet.end()
    with pytest.raises(Waiting, match="this fleet has ended"):
        fleet.arm_deadlines()
