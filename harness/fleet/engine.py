"""Finding the Pulumi command: on PATH when it is fit, else the one that `make pulumi` built."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from harness.errors import Refused

OLDEST = (3, 274, 0)
"""First version tried with error hooks, delete hooks and stashes as this program uses them."""
MODULES = Path("requirements/pulumi")


def built(root: Path) -> Path:
    """Where `make pulumi` puts what it builds from the pinned modules of this checkout."""
    cache = os.environ.get("HARNESS_CACHE") or Path.home() / ".cache" / "harness"
    pins = hashlib.sha256((root / MODULES / "go.sum").read_bytes()).hexdigest()[:16]
    return Path(cache) / "pulumi" / pins / "pulumi"


def find(root: Path) -> Path:
    """The command to run. Raises Refused when there is none of a fit version."""
    on_path = shutil.which("pulumi")
    if on_path and fit(Path(on_path)):
        return Path(on_path)
    if (root / MODULES).is_dir() and fit(built(root)):
        return built(root)
    wanted = ".".join(map(str, OLDEST))
    raise Refused(
        f"there is no Pulumi command of version {wanted} or newer",
        where=on_path or "PATH",
        next_command="make pulumi",
    )


def fit(command: Path) -> bool:
    """Whether it runs and is new enough."""
    try:
        said = subprocess.run(
            [command, "version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.match(r"v(\d+)\.(\d+)\.(\d+)", said)
    return found is not None and tuple(map(int, found.groups())) >= OLDEST


if __name__ == "__main__":
    try:
        print(find(Path(__file__).resolve().parents[2]))
    except Refused as error:
        sys.exit(str(error))
