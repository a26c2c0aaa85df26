"""A host on this computer: a work folder, and jobs as detached processes."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from harness.errors import Waiting
from harness.hosts.protocol import Completed, HostFacts, Job, JobState, job_name
from harness.onhost import job as onhost_job
from harness.onhost import trees
from harness.onhost.command import Fault
from harness.onhost.stage import replace_path
from harness.strict import build, load

_PACKAGE = Path(__file__).resolve().parents[2]
_KEPT = ("PATH", "HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "LD_LIBRARY_PATH")
_KEPT_FAMILIES = (
    "CUDA_", "NCCL_", "OMP_", "UV_", "PIP_", "SSL_", "TORCHINDUCTOR_", "TRITON_",
)  # fmt: skip
"""The last two say where compiled code is kept, so that later runs need not compile it again."""
_SHOWN_BYTES = 4 << 20
"""At most this much of a short command's output is kept (its end)."""


@dataclass(frozen=True)
class LocalHost:
    """`Host` by local processes. Jobs live in `work/jobs/ID`."""

    name: str
    work: str
    fleet_id: str
    fleet_stop: str | None = None
    """File that ends every job when it appears (the inner deadline writes it)."""
    helper_folder: str | None = None
    """Pushed copy: a folder with harness/onhost and trainer/contract.py; absent: this package."""
    address: str = "127.0.0.1"
    cache: str = ""
    patience_s: float = 0.0
    """A process on this computer is never out of reach."""

    @property
    def mark(self) -> str:
        """The fleet's identifier."""
        return self.fleet_id

    def with_helper(self, folder: str) -> LocalHost:
        """The same host, using the pushed helper in `folder` (relative to the work folder)."""
        return replace(self, helper_folder=str(self._path(folder)))

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
        """Run a short command in the work folder. Raises Waiting."""
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = self._wait(argv, self._environment(environment), timeout_s, out, err)
            done = Completed(
                argv=tuple(argv),
                exit_code=code,
                stdout=_end_of(out),
                stderr=_end_of(err),
                seconds=time.monotonic() - began,
            )
        if check and code != 0:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
            raise Waiting(f"'{argv[0]}' ended with status {code}: {last[0]}", where=self.name)
        return done

    def helper(
        self, module: str, *arguments: str, timeout_s: float = 600, check: bool = True
    ) -> Completed:
        """Run one program of `harness.onhost` with the pushed copy. Raises Waiting."""
        words, path = self.program(module)
        argv = [*words, *arguments]
        return self.run(argv, timeout_s=timeout_s, environment=path, check=check)

    def program(self, module: str) -> tuple[tuple[str, ...], dict[str, str]]:
        """Command and environment with which a job runs a program of `harness.onhost`."""
        path = {"PYTHONPATH": self.helper_folder or str(_PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        return (sys.executable, "-m", f"harness.onhost.{module}"), path

    def start(self, job: Job) -> None:
        """Start a detached job. Starting the same id twice starts it once."""
        folder, cwd = self._job(job.id), self._path(job.folder)
        record = {
            "id": job.id,
            "argv": list(job.argv),
            "cwd": str(cwd),
            "environment": dict(job.environment),
            "ends_by_utc": job.ends_by_utc,
            "fleet_stop": self.fleet_stop,
        }
        cwd.mkdir(parents=True, exist_ok=True)
        try:
            onhost_job.write_job(folder, record)
        except Fault as fault:
            raise Waiting(str(fault), where=self.name) from None
        self.helper("job", "start", str(folder), timeout_s=60)

    def state(self, job_id: str) -> JobState:
        """The job's state, from files on the host."""
        found = onhost_job.state(self._job(job_id))
        return build(JobState, found, where=f"{self.name}: job {job_id}")

    def stop(self, job_id: str, *, reason: str) -> JobState:
        """End the job and all its processes; absent is no error. Raises Waiting."""
        folder = str(self._job(job_id))
        done = self.helper("job", "stop", folder, "--reason", reason, timeout_s=90)
        return load(JobState, done.stdout.encode(), where=f"{self.name}: job {job_id}")

    def jobs(self) -> tuple[str, ...]:
        """Ids of every job that this host has a folder of."""
        base = Path(self.work) / "jobs"
        return tuple(sorted(path.name for path in base.iterdir())) if base.is_dir() else ()

    def read(
        self, path: str, *, offset: int = 0, limit: int = 1 << 20, patient: bool = True
    ) -> bytes:
        """Bytes of a file from an offset; b'' when there is nothing."""
        try:
            with open(self._path(path), "rb") as handle:
                handle.seek(offset)
                return handle.read(limit)
        except FileNotFoundError:
            return b""

    def put(self, local: Path, remote: str) -> None:
        """Copy a file or folder to the host, atomically."""
        _copy(local, self._path(remote), self.name)

    def send(self, local: Path, remote: str) -> int:
        """`put`; on one computer everything is copied."""
        self.put(local, remote)
        found = trees.hash_of(local)
        return found[1] if found else 0

    def get(self, remote: str, local: Path) -> None:
        """Copy a file or folder from the host, atomically. Raises Waiting when it is absent."""
        _copy(self._path(remote), local, self.name)

    def _path(self, path: str) -> Path:
        return Path(self.work) / path

    def _job(self, job_id: str) -> Path:
        return Path(self.work) / "jobs" / job_name(job_id, self.name)

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        scratch = Path(self.work) / "tmp"
        scratch.mkdir(parents=True, exist_ok=True)
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.upper() in _KEPT or name.startswith(_KEPT_FAMILIES)
        }
        own = {"LANG": "C.UTF-8", "TMPDIR": str(scratch), "HARNESS_FLEET": self.fleet_id}
        return kept | own | dict(more or {})

    def _wait(
        self,
        argv: Sequence[str],
        environment: dict[str, str],
        timeout_s: float,
        out: IO[bytes],
        err: IO[bytes],
    ) -> int:
        try:
            process = subprocess.Popen(
                argv,
                cwd=self.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            err.write(f"{argv[0]}: {error.strerror}".encode())
            return 127
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Waiting(
                f"'{argv[0]}' was ended after {timeout_s:g} s without an answer", where=self.name
            ) from None


def _end_of(handle: IO[bytes]) -> str:
    size = handle.seek(0, os.SEEK_END)
    handle.seek(max(0, size - _SHOWN_BYTES))
    return handle.read().decode("utf-8", "replace")


def _copy(source: Path, target: Path, where: str) -> None:
    """Copy under a temporary name and rename; an older target is replaced."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        if source.is_dir():
            shutil.copytree(source, part, symlinks=True)
        else:
            shutil.copy2(source, part)
        replace_path(part, target)
    except shutil.Error as error:  # what went wrong with each file of a folder
        raise _not_copied(source, target, str(error.args[0][0][2]), where) from None
    except OSError as error:
        raise _not_copied(source, target, str(error.strerror or error), where) from None
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def _not_copied(source: Path, target: Path, why: str, where: str) -> Waiting:
    """`why` is the system's word for it, or starts with its number and ends with both paths."""
    word = why.split("] ", 1)[-1].split(": ", 1)[0]
    full = word in map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
    again = "df -h, then run the same command again" if full else ""
    return Waiting(f"copying {source} to {target} failed ({word})", where=where, next_command=again)
