"""Detached jobs: `python -m harness.onhost.job start|run|state|stop FOLDER`.

A job's folder holds job.json (`id`, `argv`, `cwd`, `environment` on top of the supervisor's own,
`ends_by_utc`, and `fleet_stop`: a file that ends the job when it appears, or null). The supervisor
adds started.json, log and exit.json. Whoever holds the lock on FOLDER/lock is the supervisor; a
job that has a started.json is never started again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from harness.onhost import processes
from harness.onhost.command import (
    Fault,
    detach,
    lock_held,
    parser,
    print_json,
    read_optional,
    run_program,
    utc_now,
)
from harness.onhost.supervisor import MARK, RESERVE_BYTES, supervise
from harness.onhost.unit import start_unit
from trainer import contract

STOP_WAIT_S = 30.0
"""A supervisor ends its job within 15 s; one that takes longer is taken for hung and killed."""


def write_job(folder: Path, job: dict[str, Any]) -> None:
    """Write job.json once; the same id again keeps the first. Raises Fault when it differs."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".job.{os.getpid()}.{time.monotonic_ns()}.tmp"
    temporary.write_bytes(contract.canonical(job) + b"\n")
    try:
        os.link(temporary, folder / "job.json")
    except FileExistsError:
        if read_optional(folder / "job.json") != contract.parse(contract.canonical(job)):
            raise Fault(f"{folder}: another job of this id is there; ids are used once.") from None
    finally:
        temporary.unlink()


def start(folder: Path, *, wait_s: float = 10.0, unit: str = "") -> None:
    """Start the supervisor detached and return when it has taken the job (or another one has).

    With a `unit` name it is a transient systemd unit where that is possible. Raises Fault when
    none has within `wait_s` seconds, with what the supervisor said.
    """
    if not (folder / "job.json").exists():
        raise Fault(f"{folder}: there is no job.json to start.")
    if (folder / "started.json").exists():
        return
    if not start_unit(unit, "job", "run", str(folder)):
        detach(lambda: supervise(folder), errors=folder / "supervisor.log")
    until = time.monotonic() + wait_s
    while not (folder / "started.json").exists():
        if time.monotonic() > until:
            raise Fault(f"{folder}: the job did not start; {_why_not(folder)}.")
        time.sleep(0.01)


def _why_not(folder: Path) -> str:
    """The supervisor's last line; on a full disk it could leave none."""
    log = folder / "supervisor.log"
    said = log.read_text(errors="replace").splitlines()[-1:] if log.exists() else []
    if not said and shutil.disk_usage(folder).free < 2 * RESERVE_BYTES:
        return f"{os.strerror(errno.ENOSPC)}"
    return "".join(said) or "nothing was said"


def state(folder: Path) -> dict[str, Any]:
    """The job's state in the form of `JobState`.

    The lock decides whether the supervisor lives, so a reused process id cannot mislead. The order
    of the three looks matters: a supervisor writes started.json after it has taken the lock, and
    exit.json before it gives it back.
    """
    found: dict[str, Any] = {"id": folder.name, "log_bytes": _size(folder / "log")}
    if not (folder / "job.json").exists():
        return found | {"status": "absent"}
    started = read_optional(folder / "started.json")
    held = lock_held(folder / "lock")
    ended = read_optional(folder / "exit.json")
    if started is not None:
        found["started_utc"] = started["started_utc"]
    if ended is not None:
        kept = ("exit_code", "reason", "ended_utc", "seconds")
        return found | {"status": "exited"} | {key: ended[key] for key in kept}
    if started is None:
        return found | {"status": "starting" if held else "absent"}
    if held:
        return found | {"status": "running"}
    lost = read_optional(folder / "lost.json") or {}
    return found | {"status": "lost"} | {k: lost[k] for k in ("reason", "ended_utc") if k in lost}


def stop(folder: Path, *, reason: str, wait_s: float = STOP_WAIT_S) -> dict[str, Any]:
    """Ask the supervisor to end the job and wait; end what a dead supervisor left.

    An absent job is no error; one that is not started yet will not start. Raises Fault when
    processes outlive SIGKILL.
    """
    if not (folder / "job.json").exists():
        return state(folder)
    if not (folder / "stop.json").exists():
        contract.write_json(folder / "stop.json", {"reason": reason, "asked_utc": utc_now()})
    until = time.monotonic() + wait_s
    while (now := state(folder))["status"] in ("starting", "running"):
        if time.monotonic() > until:
            _kill_supervisor(folder)
            until += 5.0
        time.sleep(0.05)
    if now["status"] == "lost":
        _end_left_over(folder, reason)
    return state(folder)


def left_over(folder: Path) -> list[processes.Process]:
    """Living processes of a job whose supervisor is gone.

    They carry the job's mark in their environment, or share the session of a leader that is
    provably the job's own (same process id, start time and boot).
    """
    folder = folder.resolve()
    started = read_optional(folder / "started.json")
    if started is None or started["boot_id"] != processes.boot_id():
        return []
    leader = processes.look(started["pid"])  # a zombie leader still keeps its session's id
    ours = leader is not None and leader.start == started["start_ticks"]
    return [
        process
        for process in processes.everything()
        if process.state != "Z"
        and (
            (ours and process.session == started["pid"])
            or processes.environment_of(process.pid).get(MARK) == str(folder)
        )
        and process.pid != os.getpid()
    ]


def _end_left_over(folder: Path, reason: str) -> None:
    count = len(left_over(folder))
    survivors = processes.end(lambda: left_over(folder))
    if survivors:
        pids = ", ".join(str(process.pid) for process in survivors)
        raise Fault(f"{folder}: processes {pids} outlive SIGKILL.", exit_code=5)
    if not (folder / "lost.json").exists():
        why = f"{reason}; its supervisor was gone, {count} process(es) of it were ended"
        contract.write_json(folder / "lost.json", {"reason": why, "ended_utc": utc_now()})


def _kill_supervisor(folder: Path) -> None:
    started = read_optional(folder / "started.json") or {}
    supervisor = processes.look(started.get("supervisor_pid", 0))
    if supervisor and supervisor.start == started["supervisor_start_ticks"]:
        processes.send([supervisor], signal.SIGKILL)


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def _take(folder: Path, record: Path) -> None:
    """job.json from a file that was brought here, which is then removed."""
    try:
        job = contract.read_json(record)
    except FileNotFoundError:
        if (folder / "job.json").exists():
            return  # the same start, asked again after its connection broke
        raise
    Path(job["cwd"]).mkdir(parents=True, exist_ok=True)
    write_job(folder, job)
    record.unlink()


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("verb", choices=("start", "run", "state", "stop"))
    commands.add_argument("folder", type=Path)
    commands.add_argument("--reason", default="stopped", help="for stop; kept in the record")
    commands.add_argument("--record", type=Path, help="for start: a file to be its job.json")
    commands.add_argument("--unit", default="", help="for start: a systemd unit's name")
    given = commands.parse_args()
    folder = given.folder.resolve()
    if given.record is not None:
        _take(folder, given.record)
    if given.verb == "run":
        supervise(folder)
    elif given.verb == "start":
        start(folder, unit=given.unit)
    elif given.verb == "state":
        print_json(state(folder))
    else:
        print_json(stop(folder, reason=given.reason))
    return 0


if __name__ == "__main__":
    run_program(main)
