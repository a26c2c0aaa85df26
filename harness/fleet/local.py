"""A fleet on this computer: host folders, and a watchdog as inner deadline."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from harness.errors import Waiting
from harness.fleet.protocol import Deadline
from harness.hosts.local import LocalHost
from harness.onhost import deadline, processes
from trainer import contract


class LocalFleet:
    """`FleetSource` in `run_folder/fleet`: `hosts/host-N` are the work folders.

    `count` hosts; `deadline_utc` as in `harness.clock`. The folders are made at once, nothing else.
    """

    def __init__(self, run_folder: Path, count: int, fleet_id: str, deadline_utc: str) -> None:
        self.folder = run_folder.resolve() / "fleet"
        self._id = fleet_id
        self._deadline_utc = deadline_utc
        self._hosts = tuple(self._host(f"host-{slot}") for slot in range(count))

    @property
    def kind(self) -> str:
        """'local'."""
        return "local"

    @property
    def id(self) -> str:
        """The fleet's identifier; HARNESS_FLEET in the environment of all its processes."""
        return self._id

    @property
    def deadline_utc(self) -> str:
        """Absolute; never moves."""
        return self._deadline_utc

    def hosts(self) -> tuple[LocalHost, ...]:
        """The hosts in slot order."""
        return self._hosts

    def arm_deadlines(self) -> None:
        """Start the watchdog, again when it died. Raises Waiting when it is refused or fails."""
        self._watchdog("arm", "--at", self._deadline_utc)

    def deadlines(self) -> tuple[Deadline, ...]:
        """Both deadlines, read back now."""
        seen = deadline.state(self.folder)
        proof = f"watchdog {seen['status']}"
        if seen["pid"] is not None:
            proof += f", process {seen['pid']}, heartbeat {seen['heartbeat_utc']}"
        inner = Deadline(
            kind="inner",
            applies=True,
            at_utc=seen["deadline_utc"],
            armed=seen["status"] == "armed" and seen["deadline_utc"] == self._deadline_utc,
            proof=proof,
        )
        outer = Deadline(
            kind="outer",
            applies=False,
            armed=False,
            proof="not applicable: hosts are processes on this computer, which is never stopped",
        )
        return inner, outer

    def end(self) -> tuple[str, ...]:
        """End every job, disarm the watchdog, remove what is no evidence; idempotent.

        Logs and outputs stay. Raises Waiting when a job cannot be ended.
        """
        sentences = []
        for host in self._hosts:
            states = [host.state(job_id) for job_id in host.jobs()]
            running = [state.id for state in states if state.status != "exited"]
            for job_id in running:
                host.stop(job_id, reason="the fleet ended")
            removed = sum(1 for _ in _remove_temporary(Path(host.work)))
            sentences.append(
                f"{host.name}: {len(states)} job(s) seen, {len(running)} ended now, "
                f"{removed} temporary file(s) removed."
            )
        self._watchdog("disarm")
        if survivors := processes.end(self._processes):
            raise Waiting(f"process {survivors[0].pid} cannot be ended", where=self._id)
        for host in self._hosts:  # the last helper ran with this folder
            shutil.rmtree(Path(host.work) / "tmp", ignore_errors=True)
        return tuple(sentences)

    def residue(self) -> tuple[str, ...]:
        """Processes, sockets and temporary files of the fleet that are still there."""
        left = [
            f"process {process.pid} ({processes.command_of(process.pid)})"
            for process in self._processes()
        ]
        for host in self._hosts:
            left += [f"{host.name}: {path}" for path in _temporary(Path(host.work))]
        return tuple(left)

    def close(self) -> None:
        """Nothing is held open."""

    def _processes(self) -> list[processes.Process]:
        """Living processes that carry the fleet's mark or are in a session of one of its jobs."""
        sessions = self._sessions()
        return [
            process
            for process in processes.everything()
            if process.state != "Z"
            and process.pid != os.getpid()
            and (
                process.session in sessions
                or processes.environment_of(process.pid).get("HARNESS_FLEET") == self._id
            )
        ]

    def _sessions(self) -> set[int]:
        """Sessions of jobs whose first process still is the one that was started."""
        found = set()
        for path in self.folder.glob("hosts/*/jobs/*/started.json"):
            started = contract.read_json(path)
            leader = processes.look(started["pid"])
            same_boot = started["boot_id"] == processes.boot_id()
            if same_boot and leader is not None and leader.start == started["start_ticks"]:
                found.add(int(started["pid"]))
        return found

    def _host(self, name: str) -> LocalHost:
        work = self.folder / "hosts" / name
        work.mkdir(parents=True, exist_ok=True)
        return LocalHost(
            name=name,
            work=str(work),
            fleet_id=self._id,
            fleet_stop=str(self.folder / deadline.STOP_FILE),
        )

    def _watchdog(self, verb: str, *arguments: str) -> None:
        done = self._hosts[0].helper(
            "deadline", verb, str(self.folder), *arguments, timeout_s=60, check=False
        )
        if done.exit_code:
            raise Waiting(done.stderr.strip() or f"deadline {verb} failed", where=self._id)


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


def _remove_temporary(work: Path) -> Iterator[Path]:
    for path in list(_temporary(work)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        yield path
