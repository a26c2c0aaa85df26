"""A host's file system in a folder: its real scripts, with stubs for what ends a machine."""

from __future__ import annotations

import os
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from infra import user_data
from tests.unit.infra.fleet import admitted


class Guest:
    """A root folder, and commands that only write down how they were called."""

    def __init__(self, folder: Path) -> None:
        self.root, self.said = folder / "root", folder / "said"
        self._path = folder / "path"
        self._path.mkdir()
        self.path = f"{self._path}{os.pathsep}{os.environ['PATH']}"
        for name in ("systemctl", "shutdown", "sleep"):
            self.stub(name, f'echo "{name} $*" >> "{self.said}"')

    def stub(self, name: str, text: str) -> None:
        target = self._path / name
        target.write_text(f"#!/bin/sh\n{text}\n")
        target.chmod(target.stat().st_mode | stat.S_IXUSR)

    def run(self, script: str) -> list[str]:
        """The calls that a script made."""
        self.said.write_text("")
        environment = {
            "PATH": self.path,
            "HARNESS_ROOT": str(self.root),
        }
        subprocess.run(["/bin/sh", "-c", script], env=environment, check=False, timeout=60)
        return self.said.read_text().splitlines()

    def armed(self, slot: int = 0) -> Guest:
        self.run(user_data.arming(admitted(), slot))
        return self

    def at(self, utc: str, *, up_s: int, acknowledged: bool) -> list[str]:
        """What the guard does at a time."""
        (self.root / "proc").mkdir(exist_ok=True)
        (self.root / "proc/uptime").write_text(f"{up_s}.25 100.00\n")
        mark = self.root / "run/harness/acknowledged"
        mark.unlink(missing_ok=True)
        if acknowledged:
            mark.write_text("pair-1/host-0\n")
        moment = int(datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp())
        self.stub("date", f"echo {moment}")
        return self.run(str(self.root / "usr/local/sbin/harness-guard"))
