"""Whole local runs as a user starts them: a process, a git repository, an empty home."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.toy_plan import toy_plan, write_plan

TOP = Path(__file__).parents[2]


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Desk:
    """A folder with a repository, a plan, runs and an own home."""

    folder: Path
    plan: Path

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def latest(self) -> Path:
        return (self.runs / "toy" / "latest").resolve()

    def environment(self, **more: str) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        python = str(Path(sys.executable).parent)
        return {
            "PATH": f"{python}:{os.environ['PATH']}",
            "HOME": str(home),
            "PYTHONPATH": str(TOP),
            "HARNESS_CACHE": str(self.folder / "cache"),
            **more,
        }

    def harness(self, *arguments: str, **more: str) -> Done:
        """Run `harness` to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            cwd=self.folder,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def run(self, *arguments: str, **more: str) -> Done:
        """`harness run PLAN --local`."""
        return self.harness("run", str(self.plan), "--local", *arguments, **more)

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.folder), *arguments],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip


MakeDesk = Callable[..., Desk]


def make_desk_in(folder: Path, **changes: Any) -> Desk:
    """A fresh desk with the toy plan."""
    return Desk(folder, write_plan(folder, toy_plan(**changes)))


@pytest.fixture
def make_desk(tmp_path: Path) -> MakeDesk:
    def make(**changes: Any) -> Desk:
        return make_desk_in(tmp_path, **changes)

    return make


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A toy study that ran to its report. Tests only look at it."""
    desk = make_desk_in(tmp_path_factory.mktemp("finished"))
    (desk.folder / "notes.txt").write_text("mine\n")
    desk.git("add", "notes.txt")
    done = desk.run()
    assert done.code == 0, done.err
    return desk
