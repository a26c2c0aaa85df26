"""The inner deadline: armed and proved, never moved, re-armed after its death, fires."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.onhost import deadline, job, processes
from harness.onhost.command import Fault
from trainer import contract


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for folder in deadline.job_folders(tmp_path):
        job.stop(folder, reason="the test ended")
    deadline.disarm(tmp_path)


def test_armed_from_the_command_line_it_is_read_back_with_its_time(kit: Any, fleet: Path) -> None:
    assert deadline.state(fleet)["status"] == "absent"
    at = kit.soon(60)
    assert kit.helper("deadline", "arm", fleet, "--at", at).returncode == 0
    state = json.loads(kit.helper("deadline", "state", fleet).stdout)
    assert (state["status"], state["deadline_utc"]) == ("armed", at)
    assert processes.look(state["pid"]) is not None


def test_arming_again_keeps_the_one_watchdog(kit: Any, fleet: Path) -> None:
    at = kit.soon(60)
    assert deadline.arm(fleet, at)["pid"] == deadline.arm(fleet, at)["pid"]


def test_armed_from_four_processes_at_once_there_is_one_watchdog(
    kit: Any, fleet: Path, wait_until: Callable[..., Any]
) -> None:
    at = kit.soon(60)
    arming = [kit.spawn("deadline", "arm", fleet, "--at", at) for _ in range(4)]
    assert [one.wait() for one in arming] == [0] * 4
    named = [
        p for p in processes.everything() if str(fleet) in processes.command_of(p.pid, limit=999)
    ]
    wait_until(lambda: sum(processes.lives(p.pid, p.start) for p in named) == 1)


def test_it_never_moves(kit: Any, fleet: Path) -> None:
    at = kit.soon(60)
    deadline.arm(fleet, at)
    done = kit.helper("deadline", "arm", fleet, "--at", kit.soon(90))
    assert (done.returncode, done.stderr) == (
        3,
        f"{fleet}: the deadline is {at} and never moves.\n",
    )
    assert deadline.state(fleet)["deadline_utc"] == at


def test_a_dead_watchdog_is_seen_and_armed_again_with_the_same_time(
    kit: Any, fleet: Path, wait_until: Callable[..., Any]
) -> None:
    at = kit.soon(60)
    first = deadline.arm(fleet, at)["pid"]
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: deadline.state(fleet)["status"] == "dead")
    with pytest.raises(Fault, match="never moves"):
        deadline.arm(fleet, kit.soon(90))
    again = deadline.arm(fleet, at)
    assert again["status"] == "armed" and again["pid"] != first


def test_a_watchdog_that_hangs_is_not_counted_as_armed(
    kit: Any, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadline.arm(fleet, kit.soon(60))
    monkeypatch.setattr(deadline, "STALE_S", -1.0)
    assert deadline.state(fleet)["status"] == "stale"


def test_it_fires_and_ends_every_job_also_a_lost_one(
    kit: Any, fleet: Path, wait_until: Callable[..., Any]
) -> None:
    stop = str(fleet / deadline.STOP_FILE)
    held = kit.job("sleep", "100", name="held", fleet_stop=stop)
    lost = kit.job("sleep", "100", name="lost", fleet_stop=stop)
    kit.start(held)
    kit.start(lost)
    started = contract.read_json(lost / "started.json")
    os.kill(started["supervisor_pid"], signal.SIGKILL)
    deadline.arm(fleet, kit.soon(1.0))
    wait_until(lambda: deadline.state(fleet)["status"] == "fired")
    assert job.state(held)["reason"] == "deadline"
    assert job.state(lost)["reason"].startswith("deadline;")
    assert not processes.lives(started["pid"], started["start_ticks"])
    assert set(contract.read_json(fleet / "deadline/fired.json")["ended"]) >= {str(lost)}
    assert deadline.arm(fleet, deadline.state(fleet)["deadline_utc"])["status"] == "fired"


def test_killed_while_it_fires_and_armed_again_it_fires_again(
    kit: Any, fleet: Path, wait_until: Callable[..., Any]
) -> None:
    folder = kit.job("sleep", "100", fleet_stop=str(fleet / deadline.STOP_FILE))
    kit.start(folder)
    at = kit.soon(0.3)
    program = (
        "import os, pathlib, signal, sys; from harness.onhost import deadline\n"
        "deadline._fire = lambda fleet: os.kill(os.getpid(), signal.SIGKILL)\n"
        "deadline.arm(pathlib.Path(sys.argv[1]), sys.argv[2])"
    )
    kit.python(program, fleet, at)
    wait_until(lambda: deadline.state(fleet)["status"] == "dead")
    assert job.state(folder)["status"] == "running"
    assert deadline.arm(fleet, at)["status"] in ("firing", "fired", "armed")
    wait_until(lambda: deadline.state(fleet)["status"] == "fired")
    assert job.state(folder)["reason"] == "deadline"


def test_it_stays_armed_while_a_job_runs_and_is_disarmed_for_good(kit: Any, fleet: Path) -> None:
    folder = kit.job("sleep", "100")
    kit.start(folder)
    at = kit.soon(60)
    watchdog = processes.look(deadline.arm(fleet, at)["pid"])
    assert watchdog is not None
    with pytest.raises(Fault, match="stays armed while a job runs"):
        deadline.disarm(fleet)
    job.stop(folder, reason="done")
    assert deadline.disarm(fleet)["status"] == "disarmed"
    assert deadline.disarm(fleet)["status"] == "disarmed"
    assert not processes.lives(watchdog.pid, watchdog.start)
    with pytest.raises(Fault, match="this fleet has ended"):
        deadline.arm(fleet, at)
