"""Inputs and recipes of a plan, to carry to a machine without network or harness.

python -m bench.study_inputs --plan plans/batched-learning-135m --arm single --model DIR --into DIR

Writes `inputs/` (what hosts get, no answers), `train.json` and `evaluate.json`: the recipes that
`harness run` would hand to the trainer. `--model` is a converted seed model's folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import recipes
from harness.exposure import Ledger
from harness.inputs.layout import is_operator_side
from harness.inputs.prepare import prepare_inputs
from harness.plan import load_plan
from harness.stages.probe import LARGEST_ROW
from trainer.contract import write_json


def main() -> None:
    """Write the folder and say what is in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--arm", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--into", type=Path, required=True)
    asked = parser.parse_args()
    loaded = load_plan(asked.plan)
    plan = loaded.plan
    inputs = asked.into / "inputs"
    prepared = prepare_inputs(
        plan, loaded.folder, asked.model / "tokenizer.json", inputs, ledger=Ledger("bench")
    )
    for file in inputs.iterdir():
        if is_operator_side(file.name):
            file.unlink()
    arm = next(arm for arm in plan.arms if arm.name == asked.arm)
    size = arm.microbatch or LARGEST_ROW[asked.device]
    where = {"device": asked.device, "threads": asked.threads}
    train = recipes.train(plan, arm, microbatch=size, **where)
    evaluate = recipes.evaluate(
        plan, roles=("test",), probes=tuple(probes.name for probes in plan.data.retention),
        end_tokens=prepared.end_tokens, **where,
    )  # fmt: skip
    write_json(asked.into / "train.json", train)
    write_json(asked.into / "evaluate.json", evaluate)
    print(f"{asked.into}: {plan.name}, {prepared.identity}, {prepared.counts}")


if __name__ == "__main__":
    main()
