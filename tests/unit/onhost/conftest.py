"""Real jobs in temporary folders; whatever a test starts is ended after it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.onhost import job

ROOT = Path(__file__).resolve().parents[3]
UTC_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime(UTC_FORMAT)


class Kit:
    """Makes, starts and watches jobs by the helper's own command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Path] = []

    def soon(self, seconds: float) -> str:
        return soon(seconds)

    def command(self, module: str, *arguments: object) -> list[str]:
        return [sys.executable, "-m", f"harness.onhost.{module}", *map(str, arguments)]

    def helper(self, module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(module, *arguments),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def spawn(self, module: str, *arguments: object) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(self.command(module, *arguments), env=environment)

    def python(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def job(self, *argv: str, name: str = "one", ends_s: float = 60, **more: Any) -> Path:
        """A job's folder, not started."""
        folder = self.folder / "hosts" / "host-0" / "jobs" / name
        record: dict[str, Any] = {
            "id": name,
            "argv": list(argv),
            "cwd": str(self.folder),
            "environment": {},
            "ends_by_utc": soon(ends_s),
            "fleet_stop": None,
        }
        job.write_job(folder, record | more)
        self.made.append(folder)
        return folder

    def start(self, folder: Path) -> None:
        done = self.helper("job", "start", folder)
        assert done.returncode == 0, done.stderr

    def wait(self, folder: Path, *statuses: str, limit_s: float = 15) -> dict[str, Any]:
        """The job's state once it is one of the statuses ('exited' when none is named)."""
        wanted = statuses or ("exited",)
        found: dict[str, Any] = until(
            lambda: now if (now := job.state(folder))["status"] in wanted else None, limit_s
        )
        return found

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


def until(look: Callable[[], Any], limit_s: float = 60) -> Any:
    """What `look` returns once it is true; fails after the limit."""
    end = time.monotonic() + limit_s
    while not (found := look()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
    return found


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    made = Kit(tmp_path)
    yield made
    for folder in made.made:
        job.stop(folder, reason="the test ended")


@pytest.fixture
def wait_until() -> Callable[..., Any]:
    return until
