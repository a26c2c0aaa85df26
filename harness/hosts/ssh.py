"""A host over SSH: the same work folder, jobs and files as on this computer, over a `Link`."""

from __future__ import annotations

import posixpath
import secrets
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from harness.errors import Waiting
from harness.hosts import helper as helpers
from harness.hosts.connection import Connected, Login
from harness.hosts.copying import Copier, require
from harness.hosts.link import Ended, Link, assignments, helper_variables
from harness.hosts.protocol import Completed, HostFacts, Job, JobState, job_name
from harness.strict import build, load
from trainer import contract

JOB_ENDED = 124
"""What `timeout` ends with when it had to end the command."""


@dataclass(frozen=True)
class SSHHost:
    """`Host` over SSH. Jobs live in `work/jobs/ID`; the helper is put there when it is missing."""

    name: str
    work: str
    fleet_id: str
    link: Link
    peer_address: str
    """Where the other hosts reach it: its private address."""
    fleet_folder: str
    """Folder of the fleet on the machine: its stop file ends every job."""
    base: str
    """What runs share on the machine: helper and environments."""
    helper_folder: str | None = None

    @property
    def address(self) -> str:
        """Address that peers reach it at."""
        return self.peer_address

    @property
    def cache(self) -> str:
        """Folder for what runs share on the machine."""
        return self.base

    @property
    def mark(self) -> str:
        """Fleet and slot: two slots may stand on one machine."""
        return f"{self.fleet_id}.{self.name}"

    @property
    def patience_s(self) -> float:
        """How long it may be out of reach before it counts as lost."""
        return self.link.login.patience_s

    def with_helper(self, folder: str) -> SSHHost:
        """The same host, using the pushed helper in `folder` (relative to the work folder)."""
        return replace(self, helper_folder=self._path(folder))

    def facts(self) -> HostFacts:
        """Ask the machine about itself."""
        done = self.helper("facts", "--name", self.name, "--folder", self.work, timeout_s=60)
        return load(HostFacts, done.stdout.encode(), where=f"{self.name}: facts")

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a short command in the work folder; it may be run again. Raises Waiting."""
        began = time.monotonic()
        ended = self.link.run(
            self._script(argv, environment or {}, timeout_s), limit_s=timeout_s + 10
        )
        done = Completed(
            argv=tuple(argv),
            exit_code=ended.code,
            stdout=ended.out,
            stderr=ended.err,
            seconds=time.monotonic() - began,
        )
        if ended.code == JOB_ENDED and done.seconds >= timeout_s:
            raise Waiting(
                f"'{argv[0]}' was ended after {timeout_s:g} s without an answer", where=self.name
            )
        if check:
            require(ended, argv[0], self.name)
        return done

    def helper(
        self, module: str, *arguments: str, timeout_s: float = 600, check: bool = True
    ) -> Completed:
        """Run one program of `harness.onhost` with the pushed copy. Raises Waiting."""
        began = time.monotonic()
        asked = {"ask": "run", "module": module, "arguments": arguments, "limit_s": timeout_s}
        told, _ = self.link.ask(asked, helper=self.helper_folder)
        ended = Ended(int(told["exit_code"]), str(told["stdout"]), str(told["stderr"]))
        if check:
            require(ended, module, self.name)
        return Completed(
            argv=(module, *arguments),
            exit_code=ended.code,
            stdout=ended.out,
            stderr=ended.err,
            seconds=time.monotonic() - began,
        )

    def bare(self, module: str, *arguments: str, timeout_s: float = 60) -> str:
        """What a program of the answering helper prints, with no file or folder made for it."""
        known = assignments(helper_variables(self.link.helper))
        argv = ["timeout", f"{timeout_s:g}", "env", *known,
                self.link.login.python, "-m", f"harness.onhost.{module}", *arguments]  # fmt: skip
        ended = self.link.run(f"cd / && exec {shlex.join(argv)}", limit_s=timeout_s)
        require(ended, module, self.name)
        return ended.out

    def program(self, module: str) -> tuple[tuple[str, ...], dict[str, str]]:
        """Command and environment with which a job runs a program of `harness.onhost`."""
        folder = self.helper_folder or self._ready_helper()
        return (self.link.login.python, "-m", f"harness.onhost.{module}"), helper_variables(folder)

    def start(self, job: Job) -> None:
        """Start a detached job. Starting the same id twice starts it once."""
        record = {
            "id": job.id,
            "argv": list(job.argv),
            "cwd": self._path(job.folder),
            "environment": dict(job.environment),
            "ends_by_utc": job.ends_by_utc,
            "fleet_stop": f"{self.fleet_folder}/stop",
        }
        given = f"{self.work}/tmp/{job_name(job.id, self.name)}.{secrets.token_hex(4)}.json"
        self._copier.write(given, contract.canonical(record) + b"\n")
        self.helper(
            "job", "start", self._job(job.id), "--record", given,
            "--unit", f"harness-{self.fleet_id}-{self.name}-{job.id}", timeout_s=60,
        )  # fmt: skip

    def state(self, job_id: str) -> JobState:
        """The job's state, from files on the host. One try: raises Unreachable at once."""
        asked = {"ask": "state", "folder": self._job(job_id)}
        found, _ = self.link.ask(asked, patience_s=0)
        return build(JobState, found, where=f"{self.name}: job {job_id}")

    def stop(self, job_id: str, *, reason: str) -> JobState:
        """End the job and all its processes; absent is no error. Raises Waiting."""
        done = self.helper("job", "stop", self._job(job_id), "--reason", reason, timeout_s=90)
        return load(JobState, done.stdout.encode(), where=f"{self.name}: job {job_id}")

    def jobs(self) -> tuple[str, ...]:
        """Ids of every job that this host has a folder of."""
        found, _ = self.link.ask({"ask": "jobs", "folder": f"{self.work}/jobs"})
        return tuple(found["jobs"])

    def read(
        self, path: str, *, offset: int = 0, limit: int = 1 << 20, patient: bool = True
    ) -> bytes:
        """Bytes of a file from an offset; b'' when there is nothing."""
        return self._copier.read(self._path(path), offset=offset, limit=limit, patient=patient)

    def put(self, local: Path, remote: str) -> None:
        """Copy a file or folder to the host, atomically; what is there already is not sent."""
        self.send(local, remote)

    def send(self, local: Path, remote: str) -> int:
        """`put` that returns the bytes that were sent; 0 when the same was there already."""
        return self._copier.send(local, self._path(remote))

    def get(self, remote: str, local: Path) -> None:
        """Copy a file or folder from the host, atomically. Raises Waiting when it is absent."""
        self._copier.get(self._path(remote), local)

    @property
    def _copier(self) -> Copier:
        def script(words: Sequence[str], limit_s: float) -> str:
            argv = [self.link.login.python, *words]
            return self._script(argv, helper_variables(self._ready_helper()), limit_s)

        return Copier(self.name, self.link, script, self.helper)

    def _ready_helper(self) -> str:
        """The answering helper's folder, which is there once it has answered."""
        if not self.link.boot_id:
            self.link.ask({"ask": "ping"})
        return self.link.helper

    def _script(self, argv: Sequence[str], environment: Mapping[str, str], limit_s: float) -> str:
        """The whole remote line: work folder, limit on the machine itself, environment, command."""
        tmp = f"{self.work}/tmp"
        known = {"LANG": "C.UTF-8", "TMPDIR": tmp, "HARNESS_FLEET": self.mark, **environment}
        limited = ["timeout", "-k", "5", f"{limit_s:g}", "env", *assignments(known), *argv]
        return (
            f"mkdir -p {shlex.quote(tmp)} && cd {shlex.quote(self.work)} && "
            f"exec {shlex.join(limited)}"
        )

    def _path(self, path: str) -> str:
        return posixpath.normpath(str(PurePosixPath(self.work) / path))

    def _job(self, job_id: str) -> str:
        return f"{self.work}/jobs/{job_name(job_id, self.name)}"


def open_link(login: Login, *, base: str, fleet_id: str, work: str) -> Link:
    """The connection to a machine whose shared folder is `base`; nothing happens yet."""
    digest, data = helpers.archive()
    folder = f"{base}/helper/{digest}"

    def install(link: Link) -> None:
        ended = link.run(
            helpers.install_script(folder), limit_s=120, feed=lambda write: write(data)
        )
        if ended.code:
            words = " ".join(ended.err.split())[-300:]
            raise Waiting(f"the helper cannot be put there ({words})", where=login.where)

    return Link(
        connected=Connected(login),
        helper=folder,
        install=install,
        environment={
            "HARNESS_FLEET": f"{fleet_id}.{login.name}",
            "TMPDIR": f"{work}/tmp",
            "LANG": "C.UTF-8",
        },
    )


def ssh_host(login: Login, *, base: str, fleet_id: str, peer_address: str | None = None) -> SSHHost:
    """A host from what is known of a machine. `base`: an absolute folder there that is ours.

    The fleet's folder is `base/runs/FLEET`, the work folder `base/runs/FLEET/hosts/NAME`.
    """
    fleet_folder = f"{base}/runs/{fleet_id}"
    work = f"{fleet_folder}/hosts/{login.name}"
    return SSHHost(
        name=login.name,
        work=work,
        fleet_id=fleet_id,
        link=open_link(login, base=base, fleet_id=fleet_id, work=work),
        peer_address=peer_address or login.address,
        fleet_folder=fleet_folder,
        base=base,
    )
