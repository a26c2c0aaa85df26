"""Samples: `sample --out FILE --every S --interface IF [--stop FILE] [--job FOLDER]`.

Started as a job of its own. Writes one JSON object a line until the file `--stop` appears or the
job in `--job` has ended; with `--cap-bytes` it ends that job once the interface has sent more than
so many bytes since the first sample. Counters (cpu, disk, network) are since boot.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

from harness.onhost import job
from harness.onhost.command import Fault, parser, run_program, utc_now
from harness.onhost.facts import gpu_rows, memory_bytes
from trainer import contract

GPU_FIELDS = (
    "index",
    "utilization.gpu",
    "memory.used",
    "power.draw",
    "temperature.gpu",
    "clocks.sm",
)
GPU_NAMES = ("index", "busy_percent", "memory_mib", "power_w", "temperature_c", "clock_mhz")
_NOT_DISKS = ("loop", "ram", "zram", "dm-", "md")
_SECTOR_BYTES = 512
_POLL_S = 0.2


def traffic(interface: str) -> tuple[int, int]:
    """(sent, received) bytes of an interface since boot. Raises Fault when there is none."""
    folder = Path("/sys/class/net") / interface / "statistics"
    try:
        sent, received = (int((folder / f"{way}_bytes").read_text()) for way in ("tx", "rx"))
    except OSError:
        raise Fault(f"there is no network interface '{interface}' here.") from None
    return sent, received


def disks() -> tuple[int, int]:
    """(read, written) bytes of all whole disks since boot; what is built from disks left out."""
    names = {name for name in os.listdir("/sys/block") if not name.startswith(_NOT_DISKS)}
    read = written = 0
    for line in Path("/proc/diskstats").read_text().splitlines():
        cells = line.split()
        if cells[2] in names:
            read += int(cells[5]) * _SECTOR_BYTES
            written += int(cells[9]) * _SECTOR_BYTES
    return read, written


def cpu_seconds() -> tuple[float, float]:
    """(busy, idle) seconds of all cores together since boot; waiting for disks is idle."""
    cells = [int(cell) for cell in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    idle = cells[3] + cells[4]
    return (sum(cells) - idle) / tick, idle / tick


def gpus() -> list[dict[str, float | None]]:
    """One object a GPU; null where the driver gives no number."""
    return [dict(zip(GPU_NAMES, map(_number, row), strict=False)) for row in _gpu_rows()]


def _gpu_rows() -> list[list[str]]:
    return gpu_rows(",".join(GPU_FIELDS)) if shutil.which("nvidia-smi") else []


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def sample(interface: str, folder: Path) -> dict[str, Any]:
    """One line: UTC, monotonic seconds, counters, free memory and disk of `folder`."""
    (busy, idle), (read, written), (sent, received) = cpu_seconds(), disks(), traffic(interface)
    memory = memory_bytes()
    return {
        "utc": utc_now(),
        "monotonic_s": round(time.monotonic(), 6),
        "cpu_busy_s": busy,
        "cpu_idle_s": idle,
        "memory_available_bytes": memory["MemAvailable"],
        "memory_bytes": memory["MemTotal"],
        "disk_free_bytes": shutil.disk_usage(folder).free,
        "disk_read_bytes": read,
        "disk_written_bytes": written,
        "interface": interface,
        "sent_bytes": sent,
        "received_bytes": received,
        "gpus": gpus(),
    }


def watch(
    out: Path, every_s: float, interface: str, stop: Path | None, parent: Path | None, cap: int
) -> None:
    """Sample until told to stop; the last sample is taken at the end. `cap` 0: none."""
    first = traffic(interface)[0]
    with open(out, "ab") as handle:
        next_time = time.monotonic()
        while True:
            over = _is_over(stop, parent)
            if over or time.monotonic() >= next_time:
                row = sample(interface, out.parent)
                handle.write(contract.canonical(row) + b"\n")
                handle.flush()
                next_time = max(next_time + every_s, time.monotonic())
            if over:
                return
            if cap and parent and traffic(interface)[0] - first > cap:
                job.stop(parent, reason=f"traffic cap of {cap} bytes")
            time.sleep(min(_POLL_S, every_s))


def _is_over(stop: Path | None, parent: Path | None) -> bool:
    if stop is not None and stop.exists():
        return True
    return parent is not None and job.state(parent)["status"] not in ("starting", "running")


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("--out", type=Path, required=True)
    commands.add_argument("--every", type=float, required=True, help="seconds")
    commands.add_argument("--interface", required=True)
    commands.add_argument("--stop", type=Path)
    commands.add_argument("--job", type=Path)
    commands.add_argument("--cap-bytes", type=int, default=0)
    given = commands.parse_args()
    if given.every <= 0 or given.cap_bytes < 0 or (given.cap_bytes and given.job is None):
        raise Fault("sample: --every is positive seconds, and --cap-bytes needs --job.")
    parent = given.job.resolve() if given.job else None
    watch(given.out, given.every, given.interface, given.stop, parent, given.cap_bytes)
    return 0


if __name__ == "__main__":
    run_program(main)
