"""The seam `Host`: one machine that runs a worker (local process | SSH)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from harness.errors import BadInput, Waiting
from harness.plan.kinds import CountOrZero, NotNegative
from harness.strict import Model

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")

JobStatus = Literal["absent", "starting", "running", "exited", "lost"]
"""lost: the supervisor started and ended without leaving an exit status."""


class Unreachable(Waiting):
    """A host does not answer; what runs on it may go on."""


def job_name(job_id: str, where: str) -> str:
    """The id, which names a folder. Raises BadInput when it cannot."""
    if not _JOB_ID.fullmatch(job_id):
        raise BadInput(f"'{job_id}' cannot name a job", where=where)
    return job_id


class HostFacts(Model):
    """What a machine says about itself."""

    name: str
    hostname: str
    boot_id: str
    python: str
    cpus: CountOrZero
    memory_bytes: CountOrZero
    disk_free_bytes: CountOrZero
    gpus: tuple[str, ...]
    """Name and memory of every GPU, as the driver prints them."""
    driver: str | None = None
    clock_utc: str


class Completed(Model):
    """A short command that ended."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    seconds: NotNegative


class Job(Model):
    """A detached command. `id` is unique in the run and names its folder on the host."""

    id: str
    argv: tuple[str, ...]
    folder: str
    """Working folder, relative to the host's work folder."""
    environment: Mapping[str, str]
    """Set on top of the host's own environment; nothing secret."""
    ends_by_utc: str
    """The job is ended at this time whatever happens (arm limit or fleet deadline)."""


class JobState(Model):
    """What is on the host about a job."""

    id: str
    status: JobStatus
    exit_code: int | None = None
    """As of waitpid; negative: ended by that signal."""
    reason: str | None = None
    """Why it was ended: the reason given to stop, 'time limit' or 'deadline'; null: by itself."""
    started_utc: str | None = None
    ended_utc: str | None = None
    seconds: float | None = None
    log_bytes: CountOrZero = 0


class Host(Protocol):
    """Paths on a host are relative to its work folder unless absolute."""

    @property
    def name(self) -> str:
        """Slot name in the fleet: 'host-0', ..."""

    @property
    def work(self) -> str:
        """Absolute work folder on the host."""

    @property
    def address(self) -> str:
        """Address that peers reach it at."""

    @property
    def cache(self) -> str:
        """Absolute folder there for what runs share; empty: the operator's own cache."""

    @property
    def mark(self) -> str:
        """HARNESS_FLEET in the environment of all our processes on it."""

    @property
    def patience_s(self) -> float:
        """How long it may be out of reach, while another is not, before it counts as lost."""

    def with_helper(self, folder: str) -> Host:
        """The same host, using the helper that was pushed to `folder`."""

    def facts(self) -> HostFacts:
        """Ask the machine about itself."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a short command. Raises Waiting when it fails (with `check`) or times out."""

    def helper(
        self, module: str, *arguments: str, timeout_s: float = 600, check: bool = True
    ) -> Completed:
        """Run one program of `harness.onhost` on the host with its pushed copy."""

    def program(self, module: str) -> tuple[tuple[str, ...], dict[str, str]]:
        """Command and environment with which a job runs a program of `harness.onhost`."""

    def start(self, job: Job) -> None:
        """Start a detached job. Starting the same id twice starts it once."""

    def state(self, job_id: str) -> JobState:
        """The job's state, from files on the host. Raises Unreachable after one try."""

    def stop(self, job_id: str, *, reason: str) -> JobState:
        """End the job and all its processes (SIGTERM, after 5 s SIGKILL); absent is no error."""

    def jobs(self) -> tuple[str, ...]:
        """Ids of every job that this host has a folder of."""

    def read(
        self, path: str, *, offset: int = 0, limit: int = 1 << 20, patient: bool = True
    ) -> bytes:
        """Bytes of a file from an offset; b'' when there is nothing (also when it is absent).

        Raises Unreachable, after one try when not `patient`.
        """

    def put(self, local: Path, remote: str) -> None:
        """Copy a file or folder to the host, atomically (temporary name, rename)."""

    def send(self, local: Path, remote: str) -> int:
        """`put` that returns the bytes that moved; 0 when the same content was there already."""

    def get(self, remote: str, local: Path) -> None:
        """Copy a file or folder from the host, atomically."""
