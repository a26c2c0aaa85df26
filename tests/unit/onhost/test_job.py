"""Jobs: started once, ended in time, whole families of processes, honest about how."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.onhost import command, job, processes
from trainer import contract

APPEND = "echo ran >> runs"
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("daemon", "w").write(str(os.getpid()))
        time.sleep(100)
    os._exit(0)
os.wait()
while not os.path.exists("daemon"): time.sleep(0.01)
time.sleep(float(sys.argv[1]))
"""


def alive(pid: int) -> bool:
    seen = processes.look(pid)
    return seen is not None and seen.state != "Z"


def test_exit_status_log_and_times_are_written_down(kit: Any) -> None:
    folder = kit.job("sh", "-c", "echo out; echo err >&2; exit 3")
    kit.start(folder)
    state = kit.wait(folder)
    assert (state["exit_code"], state["reason"]) == (3, None)
    assert (folder / "log").read_text() == "out\nerr\n"
    assert state["log_bytes"] == 8
    assert state["started_utc"] < state["ended_utc"]
    assert json.loads(kit.helper("job", "state", folder).stdout) == state


def test_a_signal_shows_as_a_negative_status(kit: Any) -> None:
    folder = kit.job("sh", "-c", "kill -9 $$")
    kit.start(folder)
    assert kit.wait(folder)["exit_code"] == -9


def test_a_program_that_is_not_there_exits_127_and_the_log_says_so(kit: Any) -> None:
    folder = kit.job("/no/such/program")
    kit.start(folder)
    assert kit.wait(folder)["exit_code"] == 127
    assert "cannot start /no/such/program" in (folder / "log").read_text()


def test_the_helpers_own_python_path_and_descriptors_do_not_reach_the_job(kit: Any) -> None:
    folder = kit.job("sh", "-c", "env; ls /proc/self/fd | wc -l; cat", environment={"MINE": "1"})
    kit.start(folder)
    assert kit.wait(folder)["exit_code"] == 0  # cat: standard input is empty
    log = (folder / "log").read_text().splitlines()
    assert "MINE=1" in log
    assert not [line for line in log if line.startswith("PYTHON")]
    assert log[-1] == "4"  # three, and the one that ls opens


def test_started_from_eight_processes_at_once_it_runs_once(kit: Any) -> None:
    folder = kit.job("sh", "-c", f"{APPEND}; sleep 0.3")
    starters = [kit.spawn("job", "start", folder) for _ in range(8)]
    assert [starter.wait() for starter in starters] == [0] * 8
    kit.wait(folder)
    kit.start(folder)
    assert kit.lines("runs") == ["ran"]


def test_a_supervisor_of_a_job_that_ended_runs_nothing(kit: Any) -> None:
    folder = kit.job("sh", "-c", APPEND)
    kit.start(folder)
    kit.wait(folder)
    assert kit.helper("job", "run", folder).returncode == 0
    assert kit.lines("runs") == ["ran"]


def test_one_who_asks_whether_the_lock_is_held_does_not_prevent_the_start(kit: Any) -> None:
    folder = kit.job("sh", "-c", APPEND)
    with open(folder / "lock", "w") as asked:
        fcntl.flock(asked, fcntl.LOCK_SH)
        supervisor = kit.spawn("job", "run", folder)
        time.sleep(0.5)
    assert supervisor.wait() == 0
    assert kit.lines("runs") == ["ran"]


def test_starts_while_others_keep_asking_for_its_state(kit: Any) -> None:
    folders = [kit.job("true", name=f"j{number}") for number in range(5)]
    program = "import sys, pathlib; from harness.onhost import job\nwhile True:\n" + (
        " for p in sys.argv[1:]: job.state(pathlib.Path(p))"
    )
    asker = subprocess.Popen([sys.executable, "-c", program, *map(str, folders)])
    try:
        for folder in folders:
            kit.start(folder)
            kit.wait(folder)
    finally:
        asker.kill()
        asker.wait()


@pytest.mark.parametrize("delay_ms", range(0, 200, 20))
def test_the_starter_killed_at_any_moment_and_started_again_runs_once(
    kit: Any, delay_ms: int
) -> None:
    folder = kit.job("sh", "-c", APPEND)
    starter = kit.spawn("job", "start", folder)
    time.sleep(delay_ms / 1000)
    starter.kill()
    starter.wait()
    kit.start(folder)
    kit.wait(folder)
    assert kit.lines("runs") == ["ran"]


@pytest.mark.parametrize("delay_ms", range(0, 160, 20))
def test_the_supervisor_killed_at_any_moment_never_lets_it_run_twice(
    kit: Any, delay_ms: int
) -> None:
    folder = kit.job("sh", "-c", APPEND)
    supervisor = kit.spawn("job", "run", folder)
    time.sleep(delay_ms / 1000)
    supervisor.kill()
    supervisor.wait()
    kit.start(folder)
    state = kit.wait(folder, "exited", "lost")
    if state["status"] == "lost":
        job.stop(folder, reason="lost")
        assert len(kit.lines("runs")) <= 1
    else:
        assert kit.lines("runs") == ["ran"]


KILL_AT = """
import os, pathlib, signal, sys
from harness.onhost import supervisor
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "before started.json":
    supervisor._write_started = die
else:
    supervisor._why_end = die
supervisor.supervise(pathlib.Path(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("moment", "then", "runs"),
    [("before started.json", "exited", 1), ("after started.json, before it runs", "lost", 0)],
)
def test_killed_around_the_spawn(kit: Any, moment: str, then: str, runs: int) -> None:
    folder = kit.job("sh", "-c", APPEND)
    assert kit.python(KILL_AT, folder, moment).returncode == -9
    kit.start(folder)
    kit.wait(folder, then)
    assert len(kit.lines("runs")) == runs


KILL_THE_JOB = """
import os, pathlib, signal, sys
from harness.onhost import supervisor
write = supervisor._write_started
def killed(folder, child):
    write(folder, child)
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
supervisor._write_started = killed
supervisor.supervise(pathlib.Path(sys.argv[1]))
"""


def test_a_job_killed_before_it_runs_ends_as_any_killed_job(kit: Any) -> None:
    folder = kit.job("sh", "-c", APPEND)
    assert kit.python(KILL_THE_JOB, folder).returncode == 0
    state = job.state(folder)
    assert (state["status"], state["exit_code"], state["reason"]) == ("exited", -9, None)
    assert len(kit.lines("runs")) == 0


def test_a_lost_job_is_ended_by_stop_with_the_daemon_that_left_its_session(kit: Any) -> None:
    folder = kit.job(sys.executable, "-c", DAEMON, "100")
    kit.start(folder)
    kit.wait(folder, "running")
    started = contract.read_json(folder / "started.json")
    while not kit.lines("daemon"):
        time.sleep(0.01)
    daemon = int(kit.lines("daemon")[0])
    os.kill(started["supervisor_pid"], signal.SIGKILL)
    kit.wait(folder, "lost")
    assert alive(started["pid"]) and alive(daemon)
    state = json.loads(kit.helper("job", "stop", folder, "--reason", "lost host").stdout)
    assert state["status"] == "lost" and state["reason"].startswith("lost host;")
    assert not alive(started["pid"]) and not alive(daemon)


def test_a_reused_process_id_is_neither_taken_for_the_job_nor_ended(kit: Any) -> None:
    folder = kit.job("true")
    kit.start(folder)
    kit.wait(folder)
    bystander = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        (folder / "exit.json").unlink()
        started = contract.read_json(folder / "started.json")
        seen = processes.look(bystander.pid)
        assert seen is not None
        reused = {"pid": seen.pid, "supervisor_pid": seen.pid, "start_ticks": seen.start - 5}
        contract.write_json(folder / "started.json", started | reused)
        assert job.stop(folder, reason="x")["status"] == "lost"
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("how", ["by itself", "stopped"])
def test_a_daemon_that_left_the_session_ends_with_the_job(kit: Any, how: str) -> None:
    folder = kit.job(sys.executable, "-c", DAEMON, "0" if how == "by itself" else "100")
    kit.start(folder)
    while not kit.lines("daemon"):
        time.sleep(0.01)
    if how == "stopped":
        assert json.loads(kit.helper("job", "stop", folder).stdout)["reason"] == "stopped"
    state = kit.wait(folder)
    assert state["exit_code"] == (0 if how == "by itself" else -15)
    assert not alive(int(kit.lines("daemon")[0]))


def test_what_ignores_sigterm_is_killed_after_five_seconds(kit: Any) -> None:
    folder = kit.job("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
    kit.start(folder)
    while not (folder / "log").read_text():
        time.sleep(0.01)
    began = time.monotonic()
    state = job.stop(folder, reason="enough")
    assert (state["exit_code"], state["reason"]) == (-9, "enough")
    assert time.monotonic() - began > 4.5


def test_it_ends_at_its_time_limit(kit: Any) -> None:
    folder = kit.job("sleep", "100", ends_s=4)
    kit.start(folder)
    state = kit.wait(folder, limit_s=40)
    assert (state["exit_code"], state["reason"]) == (-15, "time limit")


def test_a_clock_set_back_does_not_put_the_limit_off(monkeypatch: pytest.MonkeyPatch) -> None:
    now, ticks = 1_800_000_000.0, 50.0
    monkeypatch.setattr("time.time", lambda: now)
    monkeypatch.setattr("time.monotonic", lambda: ticks)
    limit = command.Limit("2027-01-15T08:01:40.000000Z")  # 100 s from now
    assert not limit.passed()
    now, ticks = now - 3600, ticks + 101
    assert limit.passed()
    now, ticks = now + 3600 + 101, 50.0
    assert limit.passed()


def test_the_fleets_stop_file_ends_it_and_lets_nothing_new_run(kit: Any, tmp_path: Path) -> None:
    stop = str(tmp_path / "stop")
    running = kit.job("sleep", "100", name="a", fleet_stop=stop)
    kit.start(running)
    Path(stop).touch()
    assert kit.wait(running)["reason"] == "deadline"
    late = kit.job("sh", "-c", APPEND, name="b", fleet_stop=stop)
    kit.start(late)
    state = kit.wait(late)
    assert (state["exit_code"], state["reason"]) == (None, "deadline")
    assert kit.lines("runs") == []


def test_stopping_what_is_absent_is_no_error_and_what_is_not_started_never_runs(
    kit: Any, tmp_path: Path
) -> None:
    assert job.stop(tmp_path / "nothing", reason="x")["status"] == "absent"
    folder = kit.job("sh", "-c", APPEND)
    assert job.stop(folder, reason="changed my mind")["status"] == "absent"
    kit.start(folder)
    assert kit.wait(folder)["reason"] == "changed my mind"
    assert kit.lines("runs") == []


def test_a_hung_supervisor_is_killed_and_its_job_ended(kit: Any) -> None:
    folder = kit.job("sleep", "100")
    kit.start(folder)
    started = contract.read_json(folder / "started.json")
    os.kill(started["supervisor_pid"], signal.SIGSTOP)
    assert job.stop(folder, reason="hung", wait_s=0.3)["status"] == "lost"
    assert not alive(started["pid"]) and not alive(started["supervisor_pid"])


def test_an_id_is_used_for_one_command(kit: Any) -> None:
    kit.job("true")
    with pytest.raises(command.Fault, match="ids are used once"):
        kit.job("false")


def test_a_job_that_cannot_start_says_why_in_one_sentence(kit: Any, tmp_path: Path) -> None:
    folder = kit.job("true", ends_by_utc="tomorrow")
    with pytest.raises(command.Fault, match="'tomorrow' is not a UTC time"):
        job.start(folder, wait_s=1)
    assert job.state(folder)["status"] == "absent"
    done = kit.helper("job", "start", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{tmp_path}: there is no job.json to start.\n"
