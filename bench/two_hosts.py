"""Two ranks as two hosts on a network of a given rate, on one machine: every exchange at each rate.

python -m bench.two_hosts --rates 0,25,10,5 --out FILE      (root; ip and tc from iproute2)

Makes two network namespaces joined by a link, shapes both ends with tc's token bucket (rate 0: as
it is), starts `bench.pair` in each and takes everything down again. NCCL goes over sockets on that
link: each rank has its own NCCL_HOSTID and the exact interface. Needs a GPU a rank; with --device
cpu gloo takes the same way. Printed for each rate: bytes, the exchange's seconds beside bytes over
bandwidth, speed-up over one worker; last the projection for two L40S hosts (bench/projection.py).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bench import problem, projection

TARGET = 1.15
"""Most times bytes over bandwidth."""
UPDATES, WARM = 128, 8
"""The batched study's arm, and its first updates, which are dense or of higher rank."""
BURST = "4mb"
LIMIT_S = 900.0


@dataclass(frozen=True)
class Link:
    """Namespaces of this process and the ends of a link between them."""

    spaces: tuple[str, str]
    ends: tuple[str, str]
    addresses: tuple[str, str]

    def inside(self, host: int, *argv: str) -> list[str]:
        """A command in a host's namespace."""
        return ["ip", "netns", "exec", self.spaces[host], *argv]

    def shape(self, gbit: float) -> None:
        """Limit both ends; 0 lifts the limit."""
        for host, end in enumerate(self.ends):
            before = ("tc", "qdisc", "del", "dev", end, "root")
            subprocess.run(self.inside(host, *before), capture_output=True, check=False)
            if gbit:
                rate = ("root", "tbf", "rate", f"{gbit * 1000:.0f}mbit", "burst", BURST,
                        "latency", "50ms")  # fmt: skip
                _do(*self.inside(host, "tc", "qdisc", "add", "dev", end, *rate))


@contextmanager
def link() -> Iterator[Link]:
    """Two namespaces and the link; gone again afterwards, whatever happened. Raises SystemExit."""
    mark = f"{os.getpid() % 100000}"
    made = Link(
        (f"hb{mark}a", f"hb{mark}b"), (f"hb{mark}x", f"hb{mark}y"), ("10.201.0.1", "10.201.0.2")
    )
    with ExitStack() as undo:
        for space in made.spaces:
            _do("ip", "netns", "add", space)
            undo.callback(subprocess.run, ["ip", "netns", "del", space], check=False)
        _do("ip", "link", "add", made.ends[0], "type", "veth", "peer", "name", made.ends[1])
        for host, (space, end) in enumerate(zip(made.spaces, made.ends, strict=True)):
            _do("ip", "link", "set", end, "netns", space)
            _do("ip", "-n", space, "addr", "add", f"{made.addresses[host]}/24", "dev", end)
            _do("ip", "-n", space, "link", "set", "lo", "up")
            _do("ip", "-n", space, "link", "set", end, "up")
        yield made


def _do(*argv: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SystemExit(f"bench.two_hosts: {argv[0]}: {error.strerror}") from None
    if done.returncode:
        raise SystemExit(f"bench.two_hosts: {' '.join(argv)}: {done.stderr.strip()}")


def environment(made: Link, host: int, device: str) -> dict[str, str]:
    """What a rank is told about its network. NCCL takes names as prefixes unless `=` is before."""
    return {
        **os.environ,
        "RANK": str(host), "WORLD_SIZE": "2", "LOCAL_RANK": str(host),
        "MASTER_ADDR": made.addresses[0], "MASTER_PORT": "29511",
        "NCCL_HOSTID": f"host-{host}", "NCCL_SOCKET_IFNAME": f"={made.ends[host]}",
        "NCCL_IB_DISABLE": "1", "NCCL_NET": "Socket", "NCCL_SOCKET_NTHREADS": "4",
        "NCCL_NSOCKS_PERTHREAD": "2", "GLOO_SOCKET_IFNAME": made.ends[host],
        **({"OMP_NUM_THREADS": "1"} if device == "cpu" else {}),
    }  # fmt: skip


def measured(made: Link, gbit: float, asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """`bench.pair` at one rate."""
    made.shape(gbit)
    out = folder / f"pair-{gbit:g}.json"
    processes = []
    for host in range(2):
        argv = [
            sys.executable, "-m", "bench.pair", "--size", asked.size, "--device", asked.device,
            "--documents", str(asked.documents), "--updates", str(asked.updates), "--tokens",
            str(asked.tokens), "--interface", made.ends[host], "--out", str(out),
            *(["--only", asked.only] if asked.only else []),
        ]  # fmt: skip
        processes.append(
            subprocess.Popen(
                made.inside(host, *argv), env=environment(made, host, asked.device),
                start_new_session=True,
            )
        )  # fmt: skip
    _wait(processes)
    found: dict[str, Any] = json.loads(out.read_text())
    return found | {"gbit": gbit}


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Until both are done; one that fails ends the other. Raises SystemExit."""
    until = time.monotonic() + LIMIT_S
    while any(process.poll() is None for process in processes):
        failed = any(process.poll() for process in processes)
        if failed or time.monotonic() > until:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            raise SystemExit("bench.two_hosts: a rank failed or did not end")
        time.sleep(0.2)
    if any(process.returncode for process in processes):
        raise SystemExit("bench.two_hosts: a rank failed")


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Every exchange at every rate. Without a limit there is no bandwidth to hold it against."""
    free = {row["name"]: row for run in runs if not run["gbit"] for row in run["rows"]}
    lines = [f"{'Gbit/s':>6} {'exchange':34} {'MB':>8} {'s/update':>9} {'×one':>5} "
             f"{'exchange':>9} {'bytes/rate':>10} {'ratio':>6} {'beyond free':>11}"]  # fmt: skip
    for run in runs:
        one = run["rows"][0]["seconds"]
        for row in run["rows"][1:]:
            line = (
                f"{run['gbit']:6g} {row['name']:34} {row['sent_bytes'] / 1e6:8.1f} "
                f"{row['seconds']:9.3f} {one / row['seconds']:5.2f} {row['exchange_seconds']:9.4f}"
            )
            if run["gbit"]:
                least = projection.transfer_s(row["sent_bytes"], run["gbit"])
                line += f" {least:10.4f} {row['exchange_seconds'] / least:6.2f}"
                if row["name"] in free:
                    more = row["exchange_seconds"] - free[row["name"]]["exchange_seconds"]
                    line += f" {more / least:11.2f}"
            lines.append(line)
    lines.append(
        f"ratio: exchange over bytes/rate, its own computation included, target {TARGET:g}; "
        "beyond free: what the limit adds, over bytes/rate"
    )
    return "\n".join(lines)


def projected(free: dict[str, Any]) -> str:
    """Two L40S hosts, from the run without a limit."""
    alone = free["rows"][0]["seconds"]
    kinds = {
        row["name"]: projection.Exchanged(
            row["name"], row["seconds"] - row["exchange_seconds"], row["exchange_seconds"],
            row["sent_bytes"],
        )
        for row in free["rows"][1:]
    }  # fmt: skip
    lines = [(projection.__doc__ or "").split("\n\n")[1].strip()]
    for name, phases in _arms(kinds):
        gains = " ".join(
            f"{projection.speed_up(alone, phases, gbit, efficiency=1 / TARGET):5.2f}"
            for gbit in (5, 10, 20)
        )
        lines.append(
            f"{name:58} {gains}  {projection.total_bytes(phases) / 1e9:7.1f} GB both hosts"
        )
    return "\n".join(["two L40S at 5, 10, 20 Gbit/s, speed-up over one:", *lines])


def _arms(
    kinds: dict[str, projection.Exchanged],
) -> Iterator[tuple[str, list[tuple[int, projection.Exchanged]]]]:
    steady, lean = "PowerSGD rank 32", "PowerSGD rank 32, BF16 factors"
    for first, then in (
        ("dense FP32", "dense FP32"), ("dense FP32", steady), ("dense BF16", lean),
        ("PowerSGD rank 256, BF16 factors", lean), (lean, lean),
    ):  # fmt: skip
        if first in kinds and then in kinds:
            phases = [(WARM, kinds[first]), (UPDATES - WARM, kinds[then])]
            yield f"{WARM} × {first}, then {then}", phases


def main() -> int:
    """Measure, print, write. 2 where a part is missing, and which."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", choices=problem.SIZES, default="1.7b")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--documents", type=int, default=256)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=17408)
    parser.add_argument("--rates", default="0,25,10,5", help="Gbit/s; 0 is without a limit")
    parser.add_argument("--only", default="", help="exchanges whose name holds this")
    parser.add_argument("--out", type=Path, default=Path("bench-two-hosts.json"))
    asked = parser.parse_args()
    if asked.device == "cuda" and torch.cuda.device_count() < 2:
        print(f"bench.two_hosts: a GPU for each of two ranks is needed, and torch sees "
              f"{torch.cuda.device_count()} here; over gloo: --device cpu --size tiny",
              file=sys.stderr)  # fmt: skip
        return 2
    rates = [float(text) for text in asked.rates.split(",")]
    runs = []
    with link() as made, tempfile.TemporaryDirectory() as folder:
        for gbit in rates:
            runs.append(measured(made, gbit, asked, Path(folder)))
            asked.out.write_text(json.dumps(runs, indent=1) + "\n")
    print(table(runs))
    for run in runs:
        if not run["gbit"]:
            print(projected(run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
