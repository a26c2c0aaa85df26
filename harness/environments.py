"""The trainer's environment on the operator's own machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import harness
from harness.errors import Waiting
from harness.source import Source
from trainer import contract


@dataclass(frozen=True)
class Environment:
    """Where a trainer runs. An empty path: as found."""

    path: str
    manifest: dict[str, str]
    requirements_sha256: str | None

    def variables(self) -> dict[str, str]:
        """Environment variables of a process in it."""
        known = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        if self.path:
            known["PATH"] = f"{self.path}/bin:{known.get('PATH', '/usr/bin:/bin')}"
        return known


def environment_folder(cache: Path, requirements_sha256: str) -> Path:
    """Environments are named by the hash of their requirement file."""
    return cache / "environments" / requirements_sha256[:32]


def build(source: Source, cache: Path, *, as_found: bool) -> Environment:
    """Build the pinned environment, or describe the one that is found. Raises Waiting."""
    if as_found or source.requirements is None:
        return Environment(
            path="", manifest=_helper("describe")["manifest"], requirements_sha256=None
        )
    digest, _ = contract.hash_file(source.requirements)
    folder = environment_folder(cache, digest)
    shown = _helper("build", "--requirements", str(source.requirements), "--folder", str(folder))
    return Environment(path=str(folder), manifest=shown["manifest"], requirements_sha256=digest)


def _helper(*arguments: str) -> dict[str, dict[str, str]]:
    top = str(Path(harness.__file__).parent.parent)
    python = shutil.which("python3") if arguments == ("describe",) else sys.executable
    done = subprocess.run(
        [python or sys.executable, "-m", "harness.onhost.environment", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": top},
    )
    if done.returncode:
        words = " ".join(done.stderr.split())[-400:]
        raise Waiting(f"the trainer's environment could not be built: {words}")
    found: dict[str, dict[str, str]] = contract.parse(done.stdout)
    return found
