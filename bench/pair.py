"""Two workers: `torchrun --nproc-per-node 2 -m bench.pair --interface lo`.

Every exchange on the same documents as one worker alone: seconds an update and in the exchange,
bytes as the exchanger counts them and as the interface does (NVLink is no interface: 0 there).
`bench.two_hosts` runs it over a slow network.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
import torch.distributed as dist

from bench import ours, problem
from trainer.ranks import Rank, prefer_determinism
from trainer.receipts import versions
from trainer.recipe import Exchange
from trainer.traffic import Counters

EXCHANGES = {
    "dense FP32": Exchange("dense"),
    "PowerSGD rank 32": ours.POWERSGD,
    "PowerSGD rank 32, BF16 factors": replace(ours.POWERSGD, factors="bf16"),
    "PowerSGD rank 256, BF16 factors": replace(ours.POWERSGD, rank=256, factors="bf16"),
    "dense BF16": replace(ours.POWERSGD, dense_updates=10**6, dense_precision="bf16"),
}


def main() -> int:
    """Measure on every rank; rank 0 prints and writes."""
    parser = argparse.ArgumentParser(prog="bench.pair")
    parser.add_argument("--size", choices=problem.SIZES, default="1.7b")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--documents", type=int, default=256)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=17408)
    parser.add_argument("--interface", default="lo")
    parser.add_argument("--only", default="", help="exchanges whose name holds this")
    parser.add_argument("--out", type=Path, default=Path("bench-pair.json"))
    asked = parser.parse_args()
    rank = _join(asked.device)
    drawn = problem.draw(asked.size, documents=asked.documents, updates=asked.updates)
    prefer_determinism()
    torch.set_deterministic_debug_mode("error")
    with tempfile.TemporaryDirectory() as folder:
        weights = problem.write_model(asked.size, Path(folder), rank.device)
        alone = _measure(asked, drawn, weights, Rank(0, 1, rank.device), "one worker", ours.ALONE)
        rows = [alone] + [
            _measure(asked, drawn, weights, rank, name, kind)
            for name, kind in EXCHANGES.items()
            if asked.only in name
        ]
    if rank.rank == 0:
        _say(rows, asked.out, rank)
    dist.destroy_process_group()
    return 0


def _join(device: str) -> Rank:
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    place = int(os.environ.get("LOCAL_RANK", "0")) % max(1, torch.cuda.device_count())
    if device == "cuda":
        torch.cuda.set_device(place)
    where = torch.device("cuda", place) if device == "cuda" else torch.device("cpu")
    return Rank(dist.get_rank(), dist.get_world_size(), where)


def _measure(
    asked: argparse.Namespace, drawn: problem.Problem, weights: Path, rank: Rank, name: str,
    kind: Exchange,
) -> dict[str, Any]:  # fmt: skip
    settings = ours.Ours(name, asked.tokens, compiled=asked.device == "cuda", exchange=kind)
    loop = ours.OurLoop(settings, weights, rank, drawn.updates)
    loop.update(drawn.updates[0])
    dist.barrier()
    before = Counters.read(asked.interface)
    for documents in drawn.updates[1:]:
        loop.update(documents)
    counted = Counters.read(asked.interface).since(before)
    records = loop.records[1:]
    return {
        "name": name,
        "seconds": statistics.median(r.seconds for r in records),
        "exchange_seconds": statistics.median(r.exchange_seconds for r in records),
        "sent_bytes": records[0].sent_bytes,
        "interface_sent_bytes": counted.sent_bytes // len(records),
        "peak_bytes": rank.peak_memory()[0],
        "losses": [r.loss for r in loop.records],
    }


def _say(rows: list[dict[str, Any]], out: Path, rank: Rank) -> None:
    first = rows[0]["seconds"]
    print(f"{rank.device_name()}, {rank.workers} workers")
    print(f"{'':34} {'s/update':>9} {'×one':>6} {'exchange, ms':>13} {'sent, MB':>9} {'iface':>9}")
    for row in rows:
        print(
            f"{row['name']:34} {row['seconds']:9.3f} {first / row['seconds']:6.2f} "
            f"{1e3 * row['exchange_seconds']:13.1f} {row['sent_bytes'] / 1e6:9.1f} "
            f"{row['interface_sent_bytes'] / 1e6:9.1f}"
        )
    out.write_text(json.dumps({"versions": versions(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
