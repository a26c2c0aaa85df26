"""A pair's worker on a GPU with the memory of a smaller one: does it fit, and what that costs.

python -m bench.limited --memory-gib 44.5 --out FILE

One process does what rank 0 of two does (its half of every update, PowerSGD with error feedback,
which holds most) with a group of one, so bytes are counted and not sent. First with the whole
device, then limited, with activations kept and with activations computed again: rows of the
probe's sizes, largest first, each a quarter smaller, until one fits. Long rows that compute again
and short rows that keep are two ways into the same memory; the verdict names the faster one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")

import torch
import torch.distributed as dist

from bench import measure, ours, problem
from trainer.probe import MEMORY_SHARE
from trainer.ranks import Rank, prefer_determinism

WORKERS = 2
LONGEST = 1024
"""The study's context: no row may be shorter."""
TARGET_GIB = 40.0


def sizes(first: int) -> Iterator[int]:
    """What `probe` tries, in its order."""
    size = first
    while size > LONGEST:
        yield size
        size = size * 3 // 4
    yield LONGEST


def main() -> int:
    """Measure, print, write. 2 where there is no GPU."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", choices=problem.SIZES, default="1.7b")
    parser.add_argument("--memory-gib", type=float, default=44.5)
    parser.add_argument("--documents", type=int, default=256)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=17408, help="of the first row tried")
    parser.add_argument("--out", type=Path, default=Path("bench-limited.json"))
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        print("bench.limited: torch sees no CUDA device here", file=sys.stderr)
        return 2
    device = torch.device("cuda", 0)
    prefer_determinism()
    torch.set_deterministic_debug_mode("error")
    drawn = problem.draw(asked.size, documents=asked.documents, updates=asked.updates)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        dist.init_process_group(
            "nccl", init_method=f"file://{folder / 'store'}", rank=0, world_size=1
        )
        weights = problem.write_model(asked.size, folder / "model", device)
        rank = Rank(0, WORKERS, device)

        def timed(name: str, tokens: int, checkpointing: bool = False) -> measure.Timed:
            settings = ours.Ours(name, tokens, checkpointing=checkpointing, exchange=ours.POWERSGD)
            make = partial(ours.OurLoop, settings, weights, rank, drawn.updates)
            row = measure.time_loop(name, settings, make, drawn.updates, rank)
            row = replace(row, tokens_per_s=row.tokens_per_s and row.tokens_per_s / WORKERS)
            print(_line(row), flush=True)
            return row

        rows = [timed(f"whole device, rows of {asked.tokens}", asked.tokens)]
        total = torch.cuda.get_device_properties(device).total_memory
        share = MEMORY_SHARE * asked.memory_gib * 2**30 / total
        torch.cuda.set_per_process_memory_fraction(share, device)
        for checkpointing in (False, True):
            how = "recomputed" if checkpointing else "kept"
            for tokens in sizes(asked.tokens):
                name = f"{asked.memory_gib} GiB, {how}, rows of {tokens}"
                rows.append(timed(name, tokens, checkpointing))
                if rows[-1].seconds is not None:
                    break
        dist.destroy_process_group()
    print(verdict(rows[0], rows[1:]))
    value = {"device": rank.device_name(), "loops": [asdict(row) for row in rows]}
    asked.out.write_text(json.dumps(value, indent=1) + "\n")
    return 0


def _line(row: measure.Timed) -> str:
    if row.seconds is None or row.tokens_per_s is None:
        return f"{row.name:40} {row.why}"
    peak, first = (row.peak_bytes or 0) / 2**30, row.first_s or 0
    return (
        f"{row.name:40} {row.seconds:7.3f} s an update, {row.tokens_per_s:8.0f} tokens/s, "
        f"peak {peak:5.1f} GiB, first {first:.1f} s"
    )


def verdict(whole: measure.Timed, limited: Sequence[measure.Timed]) -> str:
    """The fastest way into the target's memory, what it costs, and what the other one costs."""
    fitted = sorted((row for row in limited if row.seconds), key=lambda row: row.seconds or 0)
    if not fitted or not whole.seconds:
        return "nothing fits"
    small = [row for row in fitted if _gib(row) <= TARGET_GIB]
    chosen = (small or fitted)[0]
    lines = [
        f"{chosen.name}: peak {_gib(chosen):.1f} GiB, at most {TARGET_GIB:g}: "
        f"{'reached' if small else 'MISSED'}; {_cost(chosen, whole)}"
    ]
    lines += [
        f"{row.name}: peak {_gib(row):.1f} GiB; {_cost(row, whole)}"
        for row in fitted
        if row is not chosen
    ]
    return "\n".join(lines)


def _gib(row: measure.Timed) -> float:
    return (row.peak_bytes or 0) / 2**30


def _cost(row: measure.Timed, whole: measure.Timed) -> str:
    change = (row.seconds or 0) / (whole.seconds or 1) - 1
    return f"{change:+.1%} of an update's time on the whole device"


if __name__ == "__main__":
    sys.exit(main())
