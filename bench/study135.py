"""A study's single arm and its evaluation on the real 135M model, beside stock loops, in one run.

python -m bench.study135 --study DIR --model DIR --out FILE     (DIR from bench.study_inputs)

The arm runs twice as `harness run` starts it: first with nothing compiled, then with what the first
left, which must end with the same parameters. Beside it a plain transformers model with padded
batches trains a few updates of the same documents; the rest of its arm is extrapolated and said
to be. Then the candidate answers the test cases: the task `evaluate`, and Hugging Face generate in
batches of 64 with the same weights.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")

import torch

from bench import evaluation, launched, measure, stock
from trainer.batches import read_documents, read_schedule
from trainer.contract import read_json
from trainer.evaluate import read_cases
from trainer.ranks import Rank

ARM_S, CASES_S = 32.0, 4.0
"""Targets: the arm's active time, and the cases' answering."""


@dataclass(frozen=True)
class ArmTimes:
    """Seconds of one run of the arm."""

    name: str
    process_s: float
    load_s: float
    """Start-up until the loop: imports, device, model."""
    first_update_s: float
    update_s: float
    """Median."""
    active_s: float
    """First update's start to last update's end."""
    tokens_per_s: float
    """Over the updates but the first."""
    peak_bytes: int
    final_loss: float
    parameter_root: str


def arm_times(name: str, ended: launched.Ended) -> ArmTimes:
    """From a train job's receipt and losses."""
    timers, body, lines = ended.receipt["timers"], ended.receipt["body"], ended.losses()
    later = lines[1:] or lines
    return ArmTimes(
        name, ended.wall_s, timers["load"], lines[0]["seconds"],
        statistics.median(line["seconds"] for line in later), timers["active"],
        sum(line["tokens"] for line in later) / sum(line["seconds"] for line in later),
        ended.receipt["peak_memory_bytes"], body["final_loss"], body["parameter_root"],
    )  # fmt: skip


def arguments() -> argparse.Namespace:
    """Defaults are the whole study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--study", type=Path, required=True, help="what bench.study_inputs wrote")
    parser.add_argument("--model", type=Path, required=True, help="the converted seed model")
    parser.add_argument("--updates", type=int, help="fewer than the plan's")
    parser.add_argument("--tokens", type=int, help="of a row; else the plan's or probe's first")
    parser.add_argument("--stock-updates", type=int, default=4)
    parser.add_argument("--cases", type=int, default=1024)
    parser.add_argument("--batch", type=int, help="cases at once; else as many as memory holds")
    parser.add_argument("--out", type=Path, default=Path("bench-study135.json"))
    return parser.parse_args()


def main() -> int:
    """Measure, print, write."""
    asked = arguments()
    with tempfile.TemporaryDirectory() as folder:
        value, said = measured(asked, Path(folder))
    print(said)
    asked.out.write_text(json.dumps(value, indent=1) + "\n")
    return 0


def measured(asked: argparse.Namespace, work: Path) -> tuple[dict[str, Any], str]:
    """(everything as JSON, the table). What was measured is printed as it comes."""
    train, evaluate = (read_json(asked.study / f"{task}.json") for task in ("train", "evaluate"))
    train["updates"] = asked.updates or train["updates"]
    train["microbatch"] = asked.tokens or train["microbatch"]
    evaluate |= {"batch": asked.batch, "retention": []}
    inputs = asked.study / "inputs"
    arms: list[ArmTimes] = []
    for name in ("first", "compiled code kept"):
        ended = launched.run(train, inputs, asked.model, work / f"arm-{len(arms)}", work / "kept")
        arms.append(arm_times(name, ended))
        print(json.dumps(asdict(arms[-1])), flush=True)
    candidate = work / "arm-0" / "out" / "candidate"
    answered = launched.run(evaluate, inputs, candidate, work / "evaluate")
    cases = answered.receipt["body"]["roles"]["test"] | {
        "process_s": answered.wall_s, "load_s": answered.receipt["timers"]["load"]
    }  # fmt: skip
    print(json.dumps(cases), flush=True)
    loops = stock_loops(asked, train, inputs)
    answers = beside_generate(asked, evaluate, inputs, candidate)
    value = {
        "settings": {name: str(value) for name, value in vars(asked).items()},
        "versions": answered.receipt["versions"], "device": answered.receipt["device_name"],
        "arms": [asdict(arm) for arm in arms], "cases": cases,
        "stock": [asdict(loop) for loop in loops],
        "evaluation": [asdict(each) | {"speedup": each.speedup} for each in answers],
    }  # fmt: skip
    return value, table(value, train["updates"])


def stock_loops(
    asked: argparse.Namespace, train: dict[str, Any], inputs: Path
) -> list[measure.Timed]:
    """The reference recipe and what is best of the stock loop on this model."""
    documents = read_documents(inputs / f"train.{train['corpus']}.jsonl", weighted=True)
    schedule = read_schedule(inputs / "schedule.json", len(documents), asked.stock_updates)
    updates = [[documents[place] for place in places] for places in schedule]
    device = torch.device(train["device"], 0) if train["device"] == "cuda" else torch.device("cpu")
    settings = (
        replace(stock.REFERENCE, checkpointing=False, name="stock: padded 16, AdamW"),
        stock.Stock("stock: padded 64, fused AdamW", 64, checkpointing=False, fused=True),
    )
    rows = []
    for each in settings:
        make = partial(stock.StockLoop, each, asked.model, device)
        rows.append(measure.time_loop(each.name, each, make, updates, Rank(0, 1, device)))
        print(f"{each.name}: {rows[-1].seconds} s an update {rows[-1].why}", flush=True)
    return rows


def beside_generate(
    asked: argparse.Namespace, evaluate: dict[str, Any], inputs: Path, candidate: Path
) -> list[evaluation.Result]:
    """Both ways of answering, in this process, on the candidate's weights."""
    device = torch.device(evaluate["device"])
    network, hub = evaluation.load_both(candidate, device)
    prompts = [tokens for _, tokens in read_cases(inputs / "test.cases.jsonl")][: asked.cases]
    wanted = argparse.Namespace(
        precisions="bf16,fp32", new_tokens=evaluate["max_new_tokens"], batch=asked.batch
    )
    ends = tuple(evaluate["end_tokens"])
    return evaluation.measure(wanted, network, hub, prompts, ends)


def table(value: dict[str, Any], updates: int) -> str:
    """What a person reads, targets beside it."""
    lines = [f"{value['device']}, {updates} updates",
             f"{'arm':34} {'active':>8} {'load':>6} {'first':>6} {'update':>7} {'tok/s':>8} "
             f"{'GiB':>6} {'process':>8}"]  # fmt: skip
    for arm in value["arms"]:
        lines.append(
            f"{arm['name']:34} {arm['active_s']:8.2f} {arm['load_s']:6.2f} "
            f"{arm['first_update_s']:6.2f} {arm['update_s']:7.4f} {arm['tokens_per_s']:8.0f} "
            f"{arm['peak_bytes'] / 2**30:6.1f} {arm['process_s']:8.2f}"
        )
    first, again = value["arms"]
    same = first["parameter_root"] == again["parameter_root"]
    lines.append(f"both ended with the same parameters: {'yes' if same else 'NO'}")
    for loop in value["stock"]:
        if loop["seconds"] is None:
            lines.append(f"{loop['name']:34} {loop['why']}")
            continue
        whole = loop["first_s"] + (updates - 1) * loop["seconds"]
        lines.append(
            f"{loop['name']:34} {whole:8.1f} {loop['load_s']:6.2f} {loop['first_s']:6.2f} "
            f"{loop['seconds']:7.4f} {loop['tokens_per_s']:8.0f} {loop['peak_bytes'] / 2**30:6.1f}"
            f"  (active extrapolated; {whole / first['active_s']:.1f} times ours)"
        )
    cases = value["cases"]
    lines.append(
        f"{cases['cases']} cases ({cases['generated_tokens']} tokens): {cases['seconds']:.2f} s, "
        f"whole process {cases['process_s']:.2f} s of which start-up {cases['load_s']:.2f} s"
    )
    lines += [_answers(each) for each in value["evaluation"]]
    lines.append(_target("active time of the arm", first["active_s"], ARM_S))
    lines.append(_target("its cases", cases["seconds"], CASES_S))
    return "\n".join(lines)


def _answers(each: dict[str, Any]) -> str:
    ties = sum(one["tie"] for one in each["partings"])
    return (
        f"generate, {each['precision']}, batch 64: {each['hub_s']:.2f} s; ours "
        f"{each['ours_first_s']:.2f} s, again {each['ours_again_s']:.2f} s "
        f"({each['speedup']:.1f} times); equal {each['equal_answers']} of {each['answers']}, "
        f"{ties} of {len(each['partings'])} partings are ties"
    )


def _target(what: str, found: float, most: float) -> str:
    return f"{what}: {found:.2f} s, at most {most:g}: {'reached' if found <= most else 'MISSED'}"


if __name__ == "__main__":
    sys.exit(main())
