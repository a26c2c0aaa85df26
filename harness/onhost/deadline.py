"""The inner deadline of a fleet without its own machines: a detached watchdog.

`deadline arm FLEET --at UTC` starts it (again, when it died; the time never moves), `deadline state
FLEET` says what it does, `deadline disarm FLEET` ends it once no job runs any more. FLEET is a
folder with `hosts/NAME/jobs/ID`. In FLEET/deadline the watchdog keeps deadline.json (written once),
lock (held while it lives), heartbeat.json, and fired.json or disarmed.json. FLEET/stop is the file
that ends every job when it appears.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from harness.onhost import job, processes
from harness.onhost.command import (
    Fault,
    Limit,
    detach,
    lock_held,
    parser,
    print_json,
    read_optional,
    run_program,
    seconds_until,
    try_lock,
    utc_now,
)
from harness.onhost.unit import start_unit
from trainer import contract

STOP_FILE = "stop"
POLL_S = 0.2
HEARTBEAT_S = 2.0
STALE_S = 15.0
"""A watchdog that holds the lock but has not written for this long is not counted as armed."""


def arm(fleet: Path, at_utc: str, *, wait_s: float = 10.0, unit: str = "") -> dict[str, Any]:
    """Have a watchdog running with this deadline. Raises Fault (3) when it would move.

    Returns the state; idempotent.
    """
    seconds_until(at_utc)  # refuse what is not a time
    folder = fleet / "deadline"
    folder.mkdir(parents=True, exist_ok=True)
    _write_once(folder / "deadline.json", {"deadline_utc": at_utc, "fleet": str(fleet)})
    kept = contract.read_json(folder / "deadline.json")["deadline_utc"]
    if kept != at_utc:
        raise Fault(f"{fleet}: the deadline is {kept} and never moves.", exit_code=3)
    if (folder / "disarmed.json").exists():
        raise Fault(f"{fleet}: this fleet has ended; its deadline is disarmed.", exit_code=3)
    until = time.monotonic() + wait_s
    while (now := state(fleet))["status"] not in ("armed", "firing", "fired"):
        if now["status"] == "dead" and not start_unit(unit, "deadline", "watch", str(fleet)):
            detach(lambda: watch(fleet), errors=folder / "watchdog.log")
        if time.monotonic() > until:
            raise Fault(f"{fleet}: the watchdog did not come up.", exit_code=4)
        time.sleep(0.1)
    return now


def state(fleet: Path) -> dict[str, Any]:
    """{status, deadline_utc, heartbeat_utc, pid}.

    absent: never armed; armed: the lock is held and the heartbeat fresh; starting: the lock is
    held, no heartbeat of its holder yet; stale: it is held and the heartbeat old; firing: it ends
    the jobs; fired; disarmed; dead: it should run and does not.
    """
    folder = fleet / "deadline"
    asked = read_optional(folder / "deadline.json")
    if asked is None:
        return {"status": "absent", "deadline_utc": None, "heartbeat_utc": None, "pid": None}
    held = lock_held(folder / "lock")
    beat = read_optional(folder / "heartbeat.json") or {}
    known = {
        "deadline_utc": asked["deadline_utc"],
        "heartbeat_utc": beat.get("heartbeat_utc"),
        "pid": beat.get("pid"),
    }
    return {"status": _status(fleet, held, beat), **known}


def _status(fleet: Path, held: bool, beat: dict[str, Any]) -> str:
    folder = fleet / "deadline"
    for word in ("fired", "disarmed"):
        if (folder / f"{word}.json").exists():
            return word
    if not held:
        return "dead"
    if (fleet / STOP_FILE).exists():
        return "firing"
    if not beat or not processes.lives(beat["pid"], beat["start_ticks"]):
        return "starting"
    return "armed" if -seconds_until(beat["heartbeat_utc"]) < STALE_S else "stale"


def disarm(fleet: Path, *, wait_s: float = 20.0) -> dict[str, Any]:
    """End the watchdog of a fleet that has ended and see it gone; idempotent.

    Raises Fault (3) while a job runs.
    """
    folder = fleet / "deadline"
    if not (folder / "deadline.json").exists():
        return state(fleet)
    running = [str(one) for one in job_folders(fleet) if _running(one)]
    if running:
        raise Fault(
            f"{fleet}: the deadline stays armed while a job runs ({running[0]}).", exit_code=3
        )
    _write_once(folder / "disarmed.json", {"disarmed_utc": utc_now()})
    until = time.monotonic() + wait_s
    beat = read_optional(folder / "heartbeat.json")
    while lock_held(folder / "lock") or (
        beat and processes.lives(beat["pid"], beat["start_ticks"])
    ):
        if time.monotonic() > until:
            raise Fault(f"{fleet}: the watchdog does not end.", exit_code=5)
        time.sleep(0.05)
    return state(fleet)


def job_folders(fleet: Path) -> list[Path]:
    """Every job's folder of every host of the fleet."""
    return sorted(path.parent for path in fleet.glob("hosts/*/jobs/*/job.json"))


def watch(fleet: Path) -> None:
    """The watchdog: waits for the deadline (or to be disarmed), then ends everything."""
    folder = fleet / "deadline"
    lock = try_lock(folder / "lock", wait_s=2.0)
    if lock is None:
        return
    limit = Limit(contract.read_json(folder / "deadline.json")["deadline_utc"])
    next_beat = 0.0
    while not limit.passed():
        if (folder / "disarmed.json").exists():
            os.close(lock)
            return
        if time.monotonic() >= next_beat:
            _beat(folder, limit.utc)
            next_beat = time.monotonic() + HEARTBEAT_S
        time.sleep(POLL_S)
    _fire(fleet)
    os.close(lock)


def _fire(fleet: Path) -> None:
    """Stop file first, so that nothing new starts; then every job, those of lost supervisors too.

    Tries again until none is left: a deadline that gives up is none.
    """
    contract.write_json(fleet / STOP_FILE, {"reason": "deadline", "fired_utc": utc_now()})
    ended: dict[str, str] = {}
    while True:
        for folder in job_folders(fleet):
            if _running(folder):
                try:
                    ended[str(folder)] = job.stop(folder, reason="deadline")["status"]
                except Fault as fault:
                    ended[str(folder)] = str(fault)
        if not any(_running(folder) for folder in job_folders(fleet)):
            break
        time.sleep(1.0)
    contract.write_json(fleet / "deadline" / "fired.json", {"ended": ended, "utc": utc_now()})


def _running(folder: Path) -> bool:
    status = job.state(folder)["status"]
    return status in ("starting", "running") or (status == "lost" and bool(job.left_over(folder)))


def _beat(folder: Path, deadline_utc: str) -> None:
    me = processes.look(os.getpid())
    assert me is not None
    record = {"pid": me.pid, "start_ticks": me.start, "deadline_utc": deadline_utc}
    contract.write_json(folder / "heartbeat.json", record | {"heartbeat_utc": utc_now()})


def _write_once(path: Path, value: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    contract.write_json(temporary, value)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("verb", choices=("arm", "watch", "state", "disarm"))
    commands.add_argument("fleet", type=Path)
    commands.add_argument("--unit", default="", help="for arm: a systemd unit's name")
    commands.add_argument("--at", help="for arm: the deadline, UTC")
    given = commands.parse_args()
    fleet = given.fleet.resolve()
    if given.verb == "state":
        print_json(state(fleet))
    elif given.verb == "disarm":
        print_json(disarm(fleet))
    elif given.verb == "watch":
        watch(fleet)
    elif given.at is None:
        raise Fault("deadline arm needs --at UTC.")
    else:
        print_json(arm(fleet, given.at, unit=given.unit))
    return 0


if __name__ == "__main__":
    run_program(main)
