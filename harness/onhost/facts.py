"""What this machine says about itself: `facts --name SLOT --folder DIR` prints HostFacts."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from harness.onhost.command import parser, print_json, run_program, utc_now
from harness.onhost.processes import boot_id


def gpu_rows(fields: str) -> list[list[str]]:
    """One list of values a GPU, as nvidia-smi prints them; empty without a driver."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line]


def memory_bytes() -> dict[str, int]:
    """/proc/meminfo in bytes."""
    rows = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if row[-1] == "kB"}


def facts(name: str, folder: Path) -> dict[str, Any]:
    """The fields of HostFacts; disk space is that of `folder`."""
    gpus = gpu_rows("name,memory.total,driver_version")
    found: dict[str, Any] = {
        "name": name,
        "hostname": socket.gethostname(),
        "boot_id": boot_id(),
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes()["MemTotal"],
        "disk_free_bytes": shutil.disk_usage(folder).free,
        "gpus": [f"{row[0]}, {row[1]} MiB" for row in gpus],
        "clock_utc": utc_now(),
    }
    return found | ({"driver": gpus[0][2]} if gpus else {})


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("--name", required=True)
    commands.add_argument("--folder", type=Path, default=Path())
    given = commands.parse_args()
    print_json(facts(given.name, given.folder))
    return 0


if __name__ == "__main__":
    run_program(main)
