"""A process that outlives the login: a transient systemd unit where systemd runs as root or sudo
lets us, else a session of its own (`command.detach`).

At logout systemd may end every process of a login (KillUserProcesses), a new session too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SYSTEMD = Path("/run/systemd/system")
_KEPT = ("PATH", "HOME", "USER", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH",
         "PYTHONDONTWRITEBYTECODE")  # fmt: skip
_KEPT_FAMILIES = ("HARNESS_", "CUDA_", "NCCL_", "OMP_")


def unit_command(
    name: str, argv: list[str], environment: Mapping[str, str], uid: int, gid: int
) -> list[str]:
    """The command that starts `argv` as a transient unit of this user; sudo's words come before."""
    unit = re.sub(r"[^A-Za-z0-9:_.-]", "-", name)[:200]
    words = ["systemd-run", "--quiet", "--collect", f"--unit={unit}", f"--uid={uid}",
             f"--gid={gid}", "--property=KillMode=process"]  # fmt: skip
    for key in sorted(environment):
        if key in _KEPT or key.startswith(_KEPT_FAMILIES):
            words.append(f"--setenv={key}={environment[key]}")
    return [*words, "--", *argv]


def start_unit(name: str, module: str, *arguments: str) -> bool:
    """Run a program of `harness.onhost` as a unit; False when that cannot be done here."""
    if not name or not SYSTEMD.is_dir() or shutil.which("systemd-run") is None:
        return False
    argv = [sys.executable, "-m", f"harness.onhost.{module}", *arguments]
    words = unit_command(name, argv, os.environ, os.getuid(), os.getgid())
    if os.getuid() != 0:
        words = ["sudo", "-n", *words]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
