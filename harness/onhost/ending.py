"""Ending a fleet on one machine: `ending end|residue FLEET --id ID [--staged]`.

FLEET is a folder with `hosts/NAME/...`. `end` ends every job, disarms the watchdog, ends every
process that carries the fleet's mark and removes what holds no evidence (with --staged also what
was brought here to run with); it prints one sentence a host. `residue` prints what is left.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from harness.onhost import deadline, job, processes
from harness.onhost.command import Fault, parser, print_json, run_program
from trainer import contract

MARK = "HARNESS_FLEET"
SETTLE_S = 10.0
STAGED = ("inputs", "listings", "models", "recipes", "seed", "source")


def end(fleet: Path, fleet_id: str, *, staged: bool = False) -> tuple[str, ...]:
    """End everything; idempotent. Raises Fault when a job or process cannot be ended."""
    sentences = []
    for work in _works(fleet):
        jobs = sorted(path.parent for path in work.glob("jobs/*/job.json"))
        running = [folder for folder in jobs if job.state(folder)["status"] != "exited"]
        for folder in running:
            job.stop(folder, reason="the fleet ended")
        removed = sum(1 for _ in _remove(work, staged=staged))
        sentences.append(
            f"{work.name}: {len(jobs)} job(s) seen, {len(running)} ended now, "
            f"{removed} temporary file(s) removed."
        )
    deadline.disarm(fleet)
    if survivors := processes.end(lambda: marked(fleet, fleet_id)):
        raise Fault(f"process {survivors[0].pid} cannot be ended.", exit_code=5)
    for work in _works(fleet):  # the last helper ran with this folder
        shutil.rmtree(work / "tmp", ignore_errors=True)
    return tuple(sentences)


def residue(fleet: Path, fleet_id: str) -> tuple[str, ...]:
    """Processes, sockets and temporary files of the fleet that are still there."""
    left = [
        f"process {process.pid} ({processes.command_of(process.pid)})"
        for process in marked(fleet, fleet_id)
    ]
    for work in _works(fleet):
        left += [f"{work.name}: {path}" for path in _temporary(work)]
    return tuple(left)


def marked(fleet: Path, fleet_id: str) -> list[processes.Process]:
    """Living processes of the fleet, those that lead to this one left out.

    They carry its mark or are in a session of one of its jobs.
    """
    sessions = _sessions(fleet)
    own = set(_ancestors(os.getpid()))
    return [
        process
        for process in processes.everything()
        if process.state != "Z"
        and process.pid not in own
        and (
            process.session in sessions
            or processes.environment_of(process.pid).get(MARK) == fleet_id
        )
    ]


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        seen = processes.look(pid)
        pid = seen.parent if seen else 0


def _works(fleet: Path) -> list[Path]:
    return sorted(path for path in (fleet / "hosts").glob("*") if path.is_dir())


def _sessions(fleet: Path) -> set[int]:
    """Sessions of jobs whose first process still is the one that was started."""
    found = set()
    for path in fleet.glob("hosts/*/jobs/*/started.json"):
        started = contract.read_json(path)
        leader = processes.look(started["pid"])
        same_boot = started["boot_id"] == processes.boot_id()
        if same_boot and leader is not None and leader.start == started["start_ticks"]:
            found.add(int(started["pid"]))
    return found


def _temporary(work: Path) -> Iterator[Path]:
    """What holds no evidence: the temporary folder, half-written copies, sockets."""
    if (work / "tmp").exists():
        yield work / "tmp"
    for path in work.rglob("*"):
        if work / "tmp" in path.parents:
            continue
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        half = path.name.startswith(".") and path.name.endswith(".tmp")
        if half or stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
            yield path


def _remove(work: Path, *, staged: bool) -> Iterator[Path]:
    for path in list(_temporary(work)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        yield path
    for name in STAGED if staged else ():
        shutil.rmtree(work / name, ignore_errors=True)


def _settled(fleet: Path, fleet_id: str) -> tuple[str, ...]:
    """What is left once processes that are on their way out had time to go."""
    until = time.monotonic() + SETTLE_S
    while (left := residue(fleet, fleet_id)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("verb", choices=("end", "residue"))
    commands.add_argument("fleet", type=Path)
    commands.add_argument("--id", required=True)
    commands.add_argument("--staged", action="store_true")
    given = commands.parse_args()
    fleet = given.fleet.resolve()
    if given.verb == "end":
        print_json(list(end(fleet, given.id, staged=given.staged)))
    else:
        print_json(list(_settled(fleet, given.id)))
    return 0


if __name__ == "__main__":
    run_program(main)
