"""Settings and counters of this machine that a run depends on.

`machine counters INTERFACE` prints {"counters": {name: value}, "why"}: the network allowance
counters that AWS's driver keeps (docs.aws.amazon.com/AWSEC2/latest/UserGuide/
monitoring-network-performance-ena.html). `machine read-ahead --folder DIR [--set KIB]` prints
{"kib", "device", "why"}: read-ahead of the disk under a folder, set where it may be, read back.
`machine gpus` prints {"used_mib": [MIB of each GPU]}.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from harness.onhost.command import parser, print_json, run_program
from harness.onhost.facts import gpu_rows
from harness.onhost.route import SYSTEM_PATH

ALLOWANCE = "_allowance_exceeded"


def counters(interface: str) -> dict[str, Any]:
    """Allowance counters of an interface; `why` says why there are none."""
    tool = shutil.which("ethtool", path=SYSTEM_PATH)
    if tool is None:
        return {"counters": {}, "why": "there is no ethtool"}
    done = subprocess.run(
        [tool, "-S", interface], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=20, check=False,
    )  # fmt: skip
    found = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition(":")
        if ALLOWANCE in name and value.strip().isdigit():
            found[name.strip()] = int(value)
    return {"counters": found, "why": "" if found else f"the driver of {interface} keeps none"}


def read_ahead(folder: Path, kib: int) -> dict[str, Any]:
    """Read-ahead of the disk under `folder` in KiB, set to `kib` when that is not 0."""
    setting = _setting(folder)
    if setting is None:
        return {"kib": 0, "device": "", "why": "the folder is on no block device"}
    why = ""
    if kib:
        why = _set(setting, kib)
    device = setting.parent.parent.name
    return {"kib": int(setting.read_text()), "device": device, "why": why}


def _set(setting: Path, kib: int) -> str:
    """Write the setting, by sudo where that asks for no password; why it could not be."""
    try:
        setting.write_text(f"{kib}\n")
    except PermissionError as error:
        sudo = shutil.which("sudo", path=SYSTEM_PATH)
        if sudo is not None:
            done = subprocess.run(
                [sudo, "-n", "tee", str(setting)], input=f"{kib}\n", capture_output=True,
                text=True, timeout=20, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return ""
        return f"it cannot be set ({error.strerror})"
    except OSError as error:
        return f"it cannot be set ({error.strerror})"
    return ""


def _setting(folder: Path) -> Path | None:
    """queue/read_ahead_kb of the whole disk that holds a folder."""
    number = os.stat(folder).st_dev
    here = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    for place in (here, here.resolve().parent):
        if (place / "queue" / "read_ahead_kb").exists():
            return (place / "queue" / "read_ahead_kb").resolve()
    return None


def gpu_memory() -> list[int]:
    """Memory in use on every GPU in MiB, as the driver says; empty without one."""
    return [int(row[0]) for row in gpu_rows("memory.used") if row and row[0].isdigit()]


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    verbs = commands.add_subparsers(dest="verb", required=True)
    verbs.add_parser("counters").add_argument("interface")
    verbs.add_parser("gpus")
    ahead = verbs.add_parser("read-ahead")
    ahead.add_argument("--folder", type=Path, required=True)
    ahead.add_argument("--set", type=int, default=0, dest="kib")
    given = commands.parse_args()
    if given.verb == "gpus":
        print_json({"used_mib": gpu_memory()})
    elif given.verb == "counters":
        print_json(counters(given.interface))
    else:
        print_json(read_ahead(given.folder, given.kib))
    return 0


if __name__ == "__main__":
    run_program(main)
