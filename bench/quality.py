"""What each saving of bytes costs in learning: two ranks on one device, variants of the exchange.

python -m bench.quality --study DIR --model DIR --out FILE     (DIR from bench.study_inputs)

Every variant trains the study's arm on two ranks (bench/together.py: the same sums as between two
hosts) from the same weights. 1/32 of the documents is held out of all of them; its weighted mean
loss is the curve. Two data seeds of the exchange in FP32 give the spread that a variant is held
against: by how much the orders of the documents alone move the curve.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")

import torch

from bench.together import Ranks
from trainer import exchange, model, recipe
from trainer.batches import Document, collate, read_documents, share
from trainer.contract import read_json
from trainer.cutting import in_rows, rows_for
from trainer.exchange import Sent
from trainer.objective import token_losses
from trainer.ranks import Rank, prefer_determinism
from trainer.recipe import Exchange, Train
from trainer.state import State
from trainer.update import AdamW

WORKERS = 2
HELD_ONE_IN = 32
POINTS = 16
"""Of the curve."""


@dataclass(frozen=True)
class Variant:
    """An arm to train."""

    name: str
    exchange: Exchange
    order: str = "one"
    """Which data seed."""


def variants(warmup_rank: int) -> tuple[Variant, ...]:
    """The reference at two data seeds, then one saving at a time, then all."""
    base = Exchange(
        "powersgd", rank=32, error_feedback=True, residual="averaged", dense_updates=8,
        min_compression_rate=2, epsilon=1e-8,
    )  # fmt: skip
    warm = replace(base, dense_updates=0, warmup_updates=8, warmup_rank=warmup_rank)
    return (
        Variant("FP32, data seed one", base),
        Variant("FP32, data seed two", base, "two"),
        Variant("dense FP32", Exchange("dense")),
        Variant("BF16 factors", replace(base, factors="bf16")),
        Variant("BF16 dense warm-up", replace(base, dense_precision="bf16")),
        Variant("2 dense updates", replace(base, dense_updates=2)),
        Variant("no warm-up", replace(base, dense_updates=0)),
        Variant(f"rank-{warmup_rank} warm-up", warm),
        Variant(f"lean: BF16, rank-{warmup_rank} warm-up", replace(warm, factors="bf16")),
        Variant("bare: BF16, no warm-up", replace(base, factors="bf16", dense_updates=0)),
    )


@dataclass
class Curve:
    """What a variant's training looked like."""

    name: str
    held_out: list[float]
    """Weighted mean loss at POINTS moments, the last after the last update."""
    losses: list[float]
    """Of every update's own documents."""
    sent_bytes: int
    """Both hosts together."""
    seconds: float


def orders(documents: Sequence[Document], recipe: Train, batch: int, order: str) -> list[
    list[Document]
]:  # fmt: skip
    """Every update's documents, shuffled anew every time round."""
    draw = random.Random(order)
    line: list[Document] = []
    while len(line) < recipe.updates * batch:
        line += draw.sample(documents, len(documents))
    return [line[start * batch : (start + 1) * batch] for start in range(recipe.updates)]


def train(
    variant: Variant, asked: Train, folder: Path, documents: Sequence[Document], batch: int,
    device: torch.device,
) -> Curve:  # fmt: skip
    """One variant from its first update to its last."""
    begun = time.monotonic()
    held = list(documents[::HELD_ONE_IN])
    taught = [document for place, document in enumerate(documents) if place % HELD_ONE_IN]
    updates = orders(taught, asked, batch, variant.order)
    ranks = _ranks(variant, asked, folder, updates, device)
    curve, total, points = Curve(variant.name, [], [], 0, 0.0), Sent(), _points(len(updates))
    for number, used in enumerate(updates, start=1):
        loss, sent = ranks.update(used)
        curve.losses.append(loss)
        total += sent
        if number in points:
            curve.held_out.append(held_out_loss(ranks.state, held, asked))
    curve.sent_bytes = total.sent_bytes * WORKERS
    curve.seconds = time.monotonic() - begun
    return curve


def _points(updates: int) -> set[int]:
    return {updates * point // POINTS for point in range(1, POINTS + 1)} - {0}


def _ranks(
    variant: Variant, asked: Train, folder: Path, updates: list[list[Document]],
    device: torch.device,
) -> Ranks:  # fmt: skip
    assert asked.packed is not None
    shares = [share(used, rank, WORKERS) for used in updates for rank in range(WORKERS)]
    rows = rows_for(shares, asked.microbatch)
    fill = asked.packed.compiled

    def cut(own: Sequence[Document]) -> Any:
        return in_rows(own, rows, fill)

    network = model.load(folder, device)
    network.train(checkpointing=asked.checkpointing, compiled=fill)
    parameters = network.parameters()
    exchanges = [
        exchange.make(variant.exchange, WORKERS, asked.seed, parameters) for _ in range(WORKERS)
    ]
    state = State(network, AdamW(parameters, asked.optimizer), exchanges[0])
    return Ranks(state, asked, exchanges, [cut] * WORKERS, device)


@torch.no_grad()
def held_out_loss(state: State, held: list[Document], asked: Train) -> float:
    """Weighted mean over documents that no variant trains on."""
    total = torch.zeros((), dtype=torch.float64)
    for start in range(0, len(held), 32):
        batch = collate(held[start : start + 32])
        placed = batch.to(next(iter(state.parameters().values())).device)
        losses_N = token_losses(state.network, placed, asked.autocast)
        total += (losses_N.double() * placed.weight_N).sum().cpu()
    return float(total) / sum(d.weight * d.target_count for d in held)


def table(curves: Sequence[Curve]) -> str:
    """Curves at four moments, and distances from the first in the later half."""
    first = curves[0].held_out
    places = sorted({(len(first) * quarter - 1) // 4 for quarter in (1, 2, 3, 4)} - {-1})
    later = range(len(first) // 2, len(first))
    lines = [
        f"{'held-out loss at share of updates':34} "
        + " ".join(f"{(place + 1) / len(first):8.0%}" for place in places)
        + f" {'mean gap':>9} {'largest':>8} {'bytes, GB':>10} {'s':>6}"
    ]
    spread = 0.0
    for number, curve in enumerate(curves):
        gaps = [curve.held_out[i] - first[i] for i in later]
        mean, most = statistics.fmean(gaps), max(map(abs, gaps))
        spread = most if number == 1 else spread
        verdict = "" if number < 2 else " within" if most <= spread else " OUTSIDE"
        lines.append(
            f"{curve.name:34} " + " ".join(f"{curve.held_out[place]:8.4f}" for place in places)
            + f" {mean:+9.4f} {most:8.4f} {curve.sent_bytes / 1e9:10.3f} {curve.seconds:6.1f}"
            + verdict
        )  # fmt: skip
    lines.append(
        "gap: to the first line, over the later half of the updates; 'within': its largest is no "
        "larger than that of the other data seed"
    )
    return "\n".join(lines)


def main() -> int:
    """Train the variants, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--study", type=Path, required=True, help="what bench.study_inputs wrote")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--updates", type=int)
    parser.add_argument("--tokens", type=int, help="of a row")
    parser.add_argument("--lr", type=float)
    parser.add_argument("--warmup-rank", type=int, default=64)
    parser.add_argument("--only", default="", help="variants whose name holds this, and the seeds")
    parser.add_argument("--out", type=Path, default=Path("bench-quality.json"))
    asked = parser.parse_args()
    value = read_json(asked.study / "train.json")
    plan = recipe.from_value(value)
    assert isinstance(plan, Train)
    plan = replace(
        plan, updates=asked.updates or plan.updates, microbatch=asked.tokens or plan.microbatch,
        optimizer=replace(plan.optimizer, lr=asked.lr or plan.optimizer.lr),
    )  # fmt: skip
    inputs = asked.study / "inputs"
    documents = read_documents(inputs / f"train.{plan.corpus}.jsonl", weighted=True)
    batch = len(read_json(inputs / "schedule.json")["updates"][0])
    device = torch.device(plan.device, 0) if plan.device == "cuda" else torch.device("cpu")
    prefer_determinism()
    if device.type == "cuda":
        torch.set_deterministic_debug_mode("error")
    curves = []
    for place, variant in enumerate(variants(asked.warmup_rank)):
        if place < 2 or asked.only in variant.name:
            gc.collect()
            curves.append(train(variant, plan, asked.model, documents, batch, device))
            print(f"{variant.name}: {curves[-1].held_out[-1]:.4f}", flush=True)
            asked.out.write_text(json.dumps([asdict(each) for each in curves]) + "\n")
    print(f"{Rank(0, 1, device).device_name()}, lr {plan.optimizer.lr}, {plan.updates} updates")
    print(table(curves))
    return 0


if __name__ == "__main__":
    sys.exit(main())
