"""The supervisor of one job: starts it once, ends it in time, writes down how it ended."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from pathlib import Path
from typing import Any

from harness.onhost import processes
from harness.onhost.command import Limit, read_optional, try_lock, utc_now
from trainer import contract

MARK = "HARNESS_JOB"
"""Set to the job's folder in the environment of all its processes."""
POLL_S = 0.2
RESERVE, RESERVE_BYTES = ".reserve", 32 * 1024
_WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def supervise(folder: Path) -> None:
    """Run the job of a folder to its end, unless another process has or had it.

    Raises ContractError or KeyError when job.json is not a job, OSError when the folder cannot be
    written; the job is then not started.
    """
    folder = folder.resolve()
    lock = try_lock(folder / "lock", wait_s=2.0, unless=folder / "started.json")
    if lock is None or (folder / "started.json").exists():
        return
    job = contract.read_json(folder / "job.json")
    limit = Limit(job["ends_by_utc"])
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    processes.become_subreaper()
    began = time.monotonic()
    _reserve(folder)
    child, go = _fork(folder, job)
    _write_started(folder, child)
    asked = _why_end(folder, job, limit)
    ran = asked is None
    if ran:
        with contextlib.suppress(BrokenPipeError):  # killed before it ran: followed as any other
            os.write(go, b"!")
    os.close(go)  # without the byte, the child ends and has run nothing
    watched = _Child(child)
    if ran:
        asked = _follow(folder, job, limit, watched)
    survivors = processes.end(lambda: processes.descendants(os.getpid()), idle=watched.reap)
    watched.reap()  # it may have become a zombie after the last look
    record = {
        "exit_code": watched.status if ran else None,
        "reason": asked,
        "ended_utc": utc_now(),
        "seconds": round(time.monotonic() - began, 6),
        "survivors": [process.pid for process in survivors],
    }
    if folder.exists():
        _write_exit(folder, record)
    os.close(lock)


def _reserve(folder: Path) -> None:
    """Hold space for exit.json, so that a job that fills the disk still leaves how it ended."""
    (folder / RESERVE).write_bytes(os.urandom(RESERVE_BYTES))


def _write_exit(folder: Path, record: dict[str, Any]) -> None:
    """exit.json, with the held space given back first; again while others take it at once."""
    (folder / RESERVE).unlink(missing_ok=True)
    for pause in (0.1, 0.5, 2.0, None):
        try:
            contract.write_json(folder / "exit.json", record)
            return
        except OSError as error:
            if error.errno != errno.ENOSPC or pause is None:
                raise
            time.sleep(pause)


def _follow(folder: Path, job: dict[str, Any], limit: Limit, watched: _Child) -> str | None:
    """Wait until the job's first process ended (None) or must be ended (why)."""
    while True:
        received = signal.sigtimedwait(_WATCHED, POLL_S)
        watched.reap()
        if watched.status is not None:
            return None
        if asked := _why_end(folder, job, limit):
            return asked
        if received is not None and received.si_signo in (signal.SIGTERM, signal.SIGINT):
            return "stopped by a signal to the supervisor"


class _Child:
    """The job's first process; orphans that come to the supervisor are reaped with it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.status: int | None = None

    def reap(self) -> None:
        """Take every ended child; note the first process's exit status."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self.status = os.waitstatus_to_exitcode(status)


def _why_end(folder: Path, job: dict[str, Any], limit: Limit) -> str | None:
    if job.get("fleet_stop") and os.path.exists(job["fleet_stop"]):
        return "deadline"
    if limit.passed():
        return "time limit"
    if not folder.exists():
        return "its folder was removed"
    asked = read_optional(folder / "stop.json")
    return None if asked is None else str(asked["reason"])


def _write_started(folder: Path, child: int) -> None:
    job, me = processes.look(child), processes.look(os.getpid())
    assert job is not None and me is not None  # both live: the child waits for its go
    record = {
        "pid": child,
        "process_group": child,
        "start_ticks": job.start,
        "supervisor_pid": me.pid,
        "supervisor_start_ticks": me.start,
        "boot_id": processes.boot_id(),
        "started_utc": utc_now(),
    }
    contract.write_json(folder / "started.json", record)


def _fork(folder: Path, job: dict[str, Any]) -> tuple[int, int]:
    """(process id, pipe) of a child that runs the job once a byte is written to the pipe.

    If the supervisor dies before started.json is on disk, the pipe closes and nothing has run:
    so a job is never run twice.
    """
    wait, go = os.pipe()
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    argv = [str(word) for word in job["argv"]]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment |= {**job["environment"], MARK: str(folder)}
    child = os.fork()
    if child:
        os.close(wait)
        os.close(log)
        return child, go
    try:
        os.close(go)
        _run_child(job["cwd"], argv, environment, wait=wait, log=log)
    finally:
        os._exit(127)


def _run_child(
    cwd: str, argv: list[str], environment: dict[str, str], *, wait: int, log: int
) -> None:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if os.read(wait, 1) != b"!":
        return
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these; a job should not
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    try:
        os.chdir(cwd)
        os.execvpe(argv[0], argv, environment)
    except OSError as error:
        os.write(2, f"cannot start {argv[0]} in {cwd}: {error.strerror}\n".encode())
