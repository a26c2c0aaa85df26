"""`python -m bench`: one device, stock loops and ours, tables and JSON.

With two workers under torchrun (`bench.pair`) exchanges are compared instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")

import torch

from bench import measure, ours, problem, stock, table
from trainer.ranks import Rank, prefer_determinism
from trainer.receipts import versions


def arguments() -> argparse.Namespace:
    """What is measured; the defaults are the batched study on one GPU."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--size", choices=problem.SIZES, default="1.7b")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--documents", type=int, default=256, help="an update")
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=17408, help="of a packed row")
    parser.add_argument("--memory-gib", type=float, help="limit of this process on the GPU")
    parser.add_argument("--only", default="", help="loops whose name holds this, and the first")
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    return parser.parse_args()


def main() -> int:
    """Measure, print, write. 2 where the device is missing."""
    asked = arguments()
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("bench: torch sees no CUDA device here; on a CPU: --device cpu --size tiny",
              file=sys.stderr)  # fmt: skip
        return 2
    device = torch.device(asked.device, 0) if asked.device == "cuda" else torch.device("cpu")
    if asked.memory_gib and asked.device == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(asked.memory_gib * 2**30 / total, device)
    with tempfile.TemporaryDirectory() as folder:
        value, said = compare(asked, device, Path(folder))
    print(said)
    asked.out.write_text(json.dumps(value, indent=1) + "\n")
    print(f"\nwritten to {asked.out}")
    return 0


def compare(
    asked: argparse.Namespace, device: torch.device, folder: Path
) -> tuple[dict[str, Any], str]:
    """(everything as JSON, the tables)."""
    drawn = problem.draw(asked.size, documents=asked.documents, updates=asked.updates)
    weights = problem.write_model(asked.size, folder / "model", device)
    rank = Rank(0, 1, device)
    prefer_determinism()  # as every process of the trainer begins
    torch.set_deterministic_debug_mode("default")
    stocks = [s for s in (stock.REFERENCE, *stock.SEARCH) if asked.only in s.name]
    variants = [v for v in ours.variants(asked.tokens) if asked.only in v.name]
    stocks, variants = stocks or [stock.REFERENCE], variants or [ours.variants(asked.tokens)[0]]
    rate = measure.matmul_rate(device, 8192 if device.type == "cuda" else 512)
    rows = [
        measure.time_loop(s.name, s, partial(stock.StockLoop, s, weights, device),
                          drawn.updates, rank)
        for s in stocks
    ]  # fmt: skip
    torch.set_deterministic_debug_mode("error")  # as training does for packed rows
    mine = [
        measure.time_loop(v.name, v, partial(ours.OurLoop, v, weights, rank, drawn.updates),
                          drawn.updates, rank)
        for v in variants
    ]  # fmt: skip
    torch.set_deterministic_debug_mode("default")
    batch = drawn.updates[0][:16]
    distance = measure.distances(weights, batch, device, stocks[:1], variants)
    parameters = sum(t.numel() for t in _parameters(weights))
    length = sum(d.read_length for d in drawn.updates[0]) / asked.documents
    flops = problem.flops_a_token(asked.size, parameters, length)
    value = {
        "device": rank.device_name(), "versions": versions(), "asked": _plain(vars(asked)),
        "matmul_flops": rate, "tokens_an_update": drawn.tokens, "parameters": parameters,
        "flops_a_token": flops, "loops": [asdict(row) for row in (*rows, *mine)],
        "distances": [asdict(row) for row in distance],
    }  # fmt: skip
    said = (
        f"{value['device']}, {asked.size}, {drawn.tokens:,.0f} tokens an update, "
        f"bf16 product {rate / 1e12:.2f} TFLOP/s\n"
        + table.times([*rows, *mine], rows[0], flops, rate)
        + "\n\n" + table.errors(distance)
        + "\n\n" + table.targets(rows, mine[0], distance)
    )  # fmt: skip
    return value, said


def _parameters(folder: Path) -> list[torch.Tensor]:
    from safetensors.torch import load_file

    return list(load_file(folder / "model.safetensors").values())


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: str(v) if isinstance(v, Path) else v for name, v in values.items()}


if __name__ == "__main__":
    sys.exit(main())
