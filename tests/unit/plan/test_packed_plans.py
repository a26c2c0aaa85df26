"""Packed rows and lean exchanges in a plan: told to the trainer, checked, tried by probe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness import recipes
from harness.errors import BadInput
from harness.plan import Plan, load_plan
from harness.plan.rules import study_findings
from harness.stages.probe import LARGEST_ROW, sizes
from trainer import recipe as trainers

PLANS = Path(__file__).parents[3] / "plans"
PACKED = {"compiled": True, "residual": "bf16", "head": "wide"}


def changed(tmp_path: Path, arm: dict[str, Any] | None = None, **recipe: Any) -> Plan:
    """The batched study with other fields in its recipe and in its first arm."""
    plan = json.loads((PLANS / "batched-learning" / "plan.json").read_bytes())
    plan["recipe"] |= recipe
    for name, value in (arm or {}).items():
        plan["arms"][0][name] = value
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    return load_plan(path).plan


def told(plan: Plan) -> dict[str, Any]:
    return recipes.train(plan, plan.arms[0], microbatch=2048, device="cuda", threads=1)


def test_a_trainer_is_told_of_rows_only_by_plans_that_have_them(tmp_path: Path) -> None:
    old = told(changed(tmp_path))
    assert "packed" not in old
    assert not {"factors", "dense_precision", "warmup"} & old["exchange"].keys()
    new = told(changed(tmp_path, packed=PACKED))
    assert new["packed"] == PACKED
    parsed = trainers.from_value(new)
    assert isinstance(parsed, trainers.Train)
    assert parsed.packed == trainers.Packed(True, "bf16", "wide")


def test_a_trainer_is_told_of_a_lean_exchange(tmp_path: Path) -> None:
    plan = json.loads((PLANS / "batched-learning" / "plan.json").read_bytes())
    lean = plan["arms"][0]["exchange"] | {
        "factors": "bf16", "dense_precision": "bf16", "warmup": {"updates": 8, "rank": 256},
    }  # fmt: skip
    parsed = trainers.from_value(told(changed(tmp_path, {"exchange": lean})))
    assert isinstance(parsed, trainers.Train)
    exchange = parsed.exchange
    assert (exchange.factors, exchange.dense_precision) == ("bf16", "bf16")
    assert (exchange.warmup_updates, exchange.warmup_rank) == (8, 256)


def test_what_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="needs the autocast bf16"):
        changed(tmp_path, packed=PACKED, autocast=None)
    plan = json.loads((PLANS / "batched-learning" / "plan.json").read_bytes())
    local = plan["arms"][0]["exchange"] | {"factors": "bf16", "residual": "local"}
    with pytest.raises(BadInput, match="need the residual 'averaged'"):
        changed(tmp_path, {"exchange": local})


@pytest.mark.parametrize(
    ("arm", "says"),
    [
        ({"microbatch": 1000}, "a microbatch of 1000 tokens cannot hold a document of 1024"),
        ({"microbatch": 16384}, ""),
    ],
)
def test_a_microbatch_of_tokens_holds_the_longest_document(
    arm: dict[str, Any], says: str, tmp_path: Path
) -> None:
    found = study_findings(changed(tmp_path, arm, packed=PACKED))
    assert [f.what for f in found if f.pointer == "/arms/0/microbatch"] == ([says] if says else [])


def test_probe_tries_smaller_sizes_down_to_what_must_fit(tmp_path: Path) -> None:
    open_size = {"microbatch": None}
    padded, packed = changed(tmp_path, open_size), changed(tmp_path, open_size, packed=PACKED)
    assert sizes(padded, padded.arms[0], "cuda") == [128, 64, 32, 16, 8, 4, 2, 1]
    rows = sizes(packed, packed.arms[0], "cuda")
    assert rows[0] == LARGEST_ROW["cuda"] and rows[-1] == 1024
    assert rows == sorted(rows, reverse=True) and len(set(rows)) == len(rows) < 13
    assert sizes(packed, packed.arms[0], "cpu")[0] == LARGEST_ROW["cpu"]
    fixed = changed(tmp_path, {"microbatch": 5000}, packed=PACKED)
    assert sizes(fixed, fixed.arms[0], "cuda") == [5000]
