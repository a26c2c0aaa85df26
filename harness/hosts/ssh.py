"""A host over SSH: the same work folder, jobs and files as on this computer, over a `Link`."""

from __future__ import annotations

import posixpath
import secrets
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from harness.errors import Waiting
from harness.hosts import helper as helpers
from harness.hosts import openssh
from harness.hosts.connection import Connected, Login
from harness.hosts.link import Ended, Link, assignments, helper_variables
from harness.hosts.protocol import Completed, HostFacts, Job, JobState, job_name
from harness.onhost import trees
from harness.onhost.command import Fault
from harness.strict import build, load
from trainer import contract

SMALL_BYTES = 1 << 20
READ_BYTES = 4 << 20
TRANSFER_S = 6 * 3600.0
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
            self._require(ended, argv[0])
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
            self._require(ended, module)
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
        self._require(ended, module)
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
        self._write(given, contract.canonical(record) + b"\n")
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
        asked = {"ask": "read", "path": self._path(path), "offset": offset, "limit": limit}
        return self.link.ask(asked, patience_s=None if patient else 0)[1]

    def put(self, local: Path, remote: str) -> None:
        """Copy a file or folder to the host, atomically; what is there already is not sent."""
        self.send(local, remote)

    def send(self, local: Path, remote: str) -> int:
        """`put` that returns the bytes that were sent; 0 when the same was there already."""
        target = self._path(remote)
        if local.is_file() and local.stat().st_size <= SMALL_BYTES:
            data = local.read_bytes()
            self._write(target, data, executable=bool(local.stat().st_mode & 0o100))
            return len(data)
        if not local.exists():
            raise Waiting("is not there to be sent", where=str(local))
        try:
            return 0 if self._has(target, local) else self._send(local, target)
        except Fault as fault:
            raise Waiting(str(fault).rstrip("."), where=self.name) from None

    def _send(self, local: Path, target: str) -> int:
        argv = [self.link.login.python, "-m", "harness.onhost.trees", "receive", target]
        script = self._script(argv, helper_variables(self._ready_helper()), TRANSFER_S)
        size = trees.size_of(local)
        ended = openssh.transfer(
            self.link, script, size, limit_s=TRANSFER_S,
            feed=lambda write: trees.pack(local, write),
        )  # fmt: skip
        self._require(ended, f"copying {local.name}")
        return size

    def _has(self, target: str, local: Path) -> bool:
        """Whether the same content is there. Nothing is hashed when nothing is there: what is
        sent carries its own hash, and is checked by it on arrival."""
        if self.link.ask({"ask": "look", "path": target})[0]["kind"] == "absent":
            return False
        there = contract.parse(self.helper("trees", "hash", target, timeout_s=TRANSFER_S).stdout)
        found = trees.hash_of(local)
        return found is not None and there.get("sha256") == found[0]

    def get(self, remote: str, local: Path) -> None:
        """Copy a file or folder from the host, atomically. Raises Waiting when it is absent."""
        target = self._path(remote)
        seen, _ = self.link.ask({"ask": "look", "path": target})
        if seen["kind"] == "absent":
            raise Waiting(f"copying {target} failed (No such file or directory)", where=self.name)
        local.parent.mkdir(parents=True, exist_ok=True)
        if "sha256" in seen:
            self._get_small(target, int(seen["size"]), str(seen["sha256"]), local)
            return
        packed = local.with_name(f".{local.name}.{secrets.token_hex(6)}.packed.tmp")
        argv = [self.link.login.python, "-m", "harness.onhost.trees", "send", target]
        try:
            with open(packed, "wb") as out:
                script = self._script(argv, helper_variables(self._ready_helper()), TRANSFER_S)
                size = int(seen["size"])
                ended = openssh.transfer(self.link, script, size, limit_s=TRANSFER_S, into=out)
            self._require(ended, f"copying {target}")
            if local.is_dir():
                shutil.rmtree(local)
            with open(packed, "rb") as source:
                trees.unpack(source.read, local)
        except Fault as fault:
            raise Waiting(str(fault).rstrip("."), where=self.name) from None
        finally:
            packed.unlink(missing_ok=True)

    def _get_small(self, target: str, size: int, sha256: str, local: Path) -> None:
        """A file of a few megabytes, in pieces over the channel that is open anyway."""
        part = local.with_name(f".{local.name}.{secrets.token_hex(6)}.tmp")
        try:
            with open(part, "wb") as out:
                while (have := out.tell()) < size:
                    piece = self.read(target, offset=have, limit=min(READ_BYTES, size - have))
                    if not piece:
                        break
                    out.write(piece)
            if contract.hash_file(part)[0] != sha256:
                raise Waiting(f"{target} changed while it was copied", where=self.name)
            part.replace(local)
        finally:
            part.unlink(missing_ok=True)

    def _require(self, ended: Ended, what: str) -> None:
        if ended.code != 0:
            last = (ended.err or ended.out).strip().splitlines()[-1:] or ["no output"]
            raise Waiting(f"'{what}' ended with status {ended.code}: {last[0]}", where=self.name)

    def _write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        mode = "755" if executable else "644"
        asked = {"ask": "write", "path": path, "bytes": len(data), "mode": mode}
        self.link.ask(asked, data)

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
