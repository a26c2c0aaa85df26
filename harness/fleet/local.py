"""A fleet on this computer: host folders, and a watchdog as inner deadline."""

from __future__ import annotations

from pathlib import Path

from harness.errors import Refused, Waiting
from harness.fleet.protocol import Deadline
from harness.hosts.local import LocalHost
from harness.onhost import deadline, ending
from harness.onhost.command import Fault


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

    def notes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def proof_of_loss(self, name: str) -> str:
        """Raises Refused: what a worker wrote lies on this computer."""
        raise Refused(
            "hosts are processes on this computer, so none of them is gone for good", where=name
        )

    def end(self) -> tuple[str, ...]:
        """End every job, disarm the watchdog, remove what is no evidence; idempotent.

        Logs and outputs stay. Raises Waiting when a job cannot be ended.
        """
        try:
            return ending.end(self.folder, self._id)
        except Fault as fault:
            raise Waiting(str(fault).rstrip("."), where=self._id) from None

    def residue(self) -> tuple[str, ...]:
        """Processes, sockets and temporary files of the fleet that are still there."""
        return ending.residue(self.folder, self._id)

    def close(self) -> None:
        """Nothing is held open."""

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
