"""What runs there: unpack, make an environment beside the machine's own Python, go on with the
steps, and put what may come back into one folder."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from away import parcels
from away.parcels import MIB, Broken

STOPPED = 4
"""Exit status of a call whose time was over: the same call goes on."""
GRACE_S = 45
LEFT_OUT = {"work", "fleet", "repository"}
"""Of a run's folder: what holds weights or can be made again."""
BACK = "back"
COMMITS = "commits.bundle"


class Machine:
    """The folder on that machine which holds everything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.load = self.folder / "load"
        self.clone = self.folder / "clone"
        self.python = self.folder / "env" / "bin" / "python3"

    def take(self, parcel: Path) -> bool:
        """Keep a parcel; true once its whole is unpacked."""
        whole = parcels.take(parcel, self.folder / "parcels")
        if whole is None:
            return False
        parcels.unpack(whole, self.load)
        whole.unlink()
        self._environment()
        self._clone()
        return True

    def _environment(self) -> None:
        """A Python beside the machine's own that sees what was sent first, then its packages."""
        if not self.python.exists():
            venv.create(self.folder / "env", with_pip=False, symlinks=True)
        own = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        site = next((self.folder / "env" / "lib").glob("python3*/site-packages"))
        lines = [str(self.load / "site"), *own]
        (site / "away.pth").write_text("".join(f"{line}\n" for line in lines))

    def _clone(self) -> None:
        """The repository at what was sent; commitments made here stay."""
        bundle = self.load / "repository.bundle"
        if not (self.clone / ".git").exists():
            self.clone.mkdir(parents=True, exist_ok=True)
            self.git("init", "-q", "-b", "main")
        self.git("fetch", "-q", str(bundle), "+refs/heads/harness/*:refs/heads/harness/*")
        self.git("fetch", "-q", str(bundle), "HEAD")
        base = self.git("rev-parse", "FETCH_HEAD").strip()
        self.git("reset", "-q", "--hard", base)
        sent = self.git("ls-remote", str(bundle), "refs/heads/harness/*").splitlines()
        known = [line.split()[0] for line in sent]
        _write(self.folder / "base.json", {"base": base, "known": known})
        developed = self.load / "runs"
        if developed.is_dir():
            subprocess.run(["cp", "-rn", str(developed), str(self.clone)], check=True)

    def git(self, *arguments: str) -> str:
        """Run git in the clone. Raises Broken."""
        try:
            done = subprocess.run(
                ["git", "-C", str(self.clone), *arguments],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        except FileNotFoundError:
            raise Broken("git is not installed on this machine, and commitments need it") from None
        if done.returncode:
            raise Broken(f"git {arguments[0]} failed: {' '.join(done.stderr.split())[:300]}")
        return done.stdout

    def go(self, steps: Sequence[str], *, seconds: float) -> int:
        """Run the steps that are not done yet, in order; the exit status of the one that stopped.

        A step is a command line of harness. Jobs on workers run on when the time is over.
        """
        if not self.clone.is_dir():
            raise Broken("no parcels were taken yet, or not all of them; first: take PARCEL")
        record = self.folder / "steps.json"
        done: dict[str, Any] = json.loads(record.read_text()) if record.exists() else {}
        until = time.monotonic() + seconds
        for step in steps:
            if done.get(step, {}).get("exit") == 0:
                _say(f"done before: harness {step}")
                continue
            began = time.monotonic()
            status = self._step(step, until - began)
            took = round(time.monotonic() - began, 1)
            before = done.get(step, {}).get("seconds", [])
            done[step] = {"exit": status, "seconds": [*before, took]}
            _write(record, done)
            _say(f"harness {step}: status {status} after {took} s")
            if status:
                return status
        return 0

    def _step(self, step: str, seconds: float) -> int:
        if seconds <= 0:
            return STOPPED
        _say(f"harness {step}")
        argv = [str(self.python), "-m", "harness", *shlex.split(step)]
        process = subprocess.Popen(argv, cwd=self.clone, env=self._variables())
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return STOPPED

    def _variables(self) -> dict[str, str]:
        cache = self.folder / "cache"
        return {
            **os.environ,
            "PATH": f"{self.python.parent}{os.pathsep}{os.environ.get('PATH', '/usr/bin:/bin')}",
            "HARNESS_CACHE": str(cache),
            "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
            "TRITON_CACHE_DIR": str(cache / "triton"),
            "PYTHONUNBUFFERED": "1",
        }

    def bring(self, out: Path, *, limit_mib: int) -> None:
        """Commits made here as a git bundle; records of runs and evidence in pieces."""
        out.mkdir(parents=True, exist_ok=True)
        (out / COMMITS).unlink(missing_ok=True)
        for earlier in out.glob(f"{BACK}-*"):
            shutil.rmtree(earlier)
        base: dict[str, Any] = json.loads((self.folder / "base.json").read_text())
        self._commits(out / COMMITS, base)
        content = [(path, str(path.relative_to(self.clone))) for path in self._records()]
        content.append((self.folder / "steps.json", "steps.json"))
        content = [pair for pair in content if pair[0].exists()]
        back = self.folder / BACK
        for parcel in parcels.pack(content, back, limit=limit_mib * MIB):
            shutil.move(parcel, out / f"{BACK}-{parcel.name}")

    def _commits(self, target: Path, base: dict[str, Any]) -> None:
        rows = self.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/harness")
        new = [
            ref
            for commit, ref in (line.split() for line in rows.splitlines())
            if commit not in base["known"]
        ]
        if new:
            without = [f"^{commit}" for commit in (base["base"], *base["known"])]
            self.git("bundle", "create", "-q", str(target), *without, *new)

    def _records(self) -> list[Path]:
        """evidence/ and of every run what is not in LEFT_OUT."""
        found = sorted((self.clone / "evidence").glob("*"))
        for run in sorted((self.clone / "runs").glob("*/*/run.json")):
            if not run.parent.is_symlink():
                found += [p for p in sorted(run.parent.iterdir()) if p.name not in LEFT_OUT]
        return found


def _write(path: Path, value: object) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(part, path)


def _say(words: str) -> None:
    print(f"away: {words}", file=sys.stderr, flush=True)
