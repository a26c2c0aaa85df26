"""Plans and measurements of the recorded studies, rebuilt from their published counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.measuring import Measurements, ModelMeasured
from harness.plan import Plan
from harness.receipts import Distance, Timers
from harness.results import ArmResult
from harness.scoring.tables import CaseRow
from harness.strict import build

ROOT = "a" * 64


def plan_value(decisions: Sequence[Mapping[str, Any]], *, test: int = 4) -> dict[str, Any]:
    """plan.json of a small study with the arms 'single' and 'pair'."""
    pair = {
        "kind": "powersgd", "rank": 32, "error_feedback": True, "residual": "averaged",
        "dense_updates": 8, "min_compression_rate": 2, "epsilon": 1e-8,
    }  # fmt: skip
    limits = {"seconds": 100, "traffic_gb": 1}
    arms = [
        {"name": "single", "workers": 1, "microbatch": 16, "exchange": {"kind": "none"}},
        {"name": "pair", "workers": 2, "exchange": pair},
    ]
    common = {"corpus": "clean", "preserve": "weights", "attempts": 1, "limits": limits}
    return {
        "schema": "harness/plan/1",
        "name": "recorded",
        "question": "Does it?",
        "seed": "s",
        "trainer": {"kind": "bundled"},
        "environment": "as-found",
        "model": {"kind": "trainer"},
        "tokenizer": {"kind": "model"},
        "chat": {"form": "chatml"},
        "data": {
            "tasks": {
                "families": ["lookup", "filter", "sort", "total"],
                "rows": 3,
                "absent_every": 0,
                "train_wordings": [0, 1],
                "test_wordings": [0, 1, 2, 3],
            },
            "roles": {"train_tasks": 8, "train_replay": 0, "development": 4, "test": test},
            "retention": [{"name": "public", "source": {"kind": "passages"}, "count": 3}],
            "weights": {"task": 8, "replay": 1},
        },
        "recipe": {
            "updates": 2,
            "global_batch": 4,
            "context_tokens": 64,
            "optimizer": {
                "kind": "adamw", "lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8,
                "weight_decay": 0,
            },
            "schedule": {"kind": "constant", "warmup_updates": 0},
        },
        "arms": [common | arm for arm in arms],
        "evaluation": {"max_new_tokens": 8, "batch": 4},
        "decisions": [{"claim": "It does.", **decision} for decision in decisions],
        "hosts": {"local": {"count": 2}},
        "budget": {
            "ceiling_usd": "0", "allowance_usd": "0", "deadline_s": 100, "traffic_gb_per_host": 1,
            "retention_days": 0, "attempts": 1,
        },
    }  # fmt: skip


def plan_of(*decisions: Mapping[str, Any]) -> Plan:
    """A plan with these decisions; names and claims are filled in."""
    named = [{"name": f"d{i}", **decision} for i, decision in enumerate(decisions)]
    return build(Plan, plan_value(named), where="plan")


def rows(correct: Sequence[bool], *, valid: bool = True) -> tuple[CaseRow, ...]:
    """Cases c0000, c0001, ... over four families and four wordings in turn."""
    families = ("lookup", "filter", "sort", "total")
    return tuple(
        CaseRow(f"c{i:04}", families[i % 4], i // 4 % 4, correct=right, valid_json=right or valid)
        for i, right in enumerate(correct)
    )


def model(
    name: str,
    cases: Sequence[CaseRow] = (),
    retention: Mapping[str, float | None] | None = None,
    **changes: Any,
) -> ModelMeasured:
    """A scored model with one probe set, 'public'."""
    return ModelMeasured(
        name=name,
        parameter_root=ROOT,
        cases=tuple(cases),
        retention={"public": retention or {}},
        evaluation_seconds=1.0,
        **changes,
    )


def pair_of_models(both: int, gained: int, lost: int, neither: int) -> Measurements:
    """'pair' against 'single', case by case, from the four counts."""
    ours = [True] * both + [True] * gained + [False] * (lost + neither)
    theirs = [True] * both + [False] * gained + [True] * lost + [False] * neither
    models = {"single": model("single", rows(theirs)), "pair": model("pair", rows(ours))}
    return Measurements(models, {}, ())


def arm(name: str, *, workers: int, allocated: float, sent: int = 1, **timers: float) -> ArmResult:
    """An arm with these timers."""
    return ArmResult(
        name=name,
        workers=workers,
        exchange="none",
        corpus="clean",
        microbatch=1,
        attempts=1,
        updates=2,
        timers=Timers(allocated=allocated / workers, **timers),
        wall_seconds=1.0,
        allocated_seconds=allocated,
        tokens=1,
        targets=1,
        weighted_targets=1.0,
        tokens_per_s=1.0,
        peak_memory_bytes=1,
        peak_memory_of="device",
        sent_bytes=sent,
        received_bytes=5,
        exchange_sent_bytes=0,
        first_loss=2.0,
        final_loss=1.0,
        parameter_root=ROOT,
        ranks_agree=True,
    )


def batched_arms() -> Measurements:
    """The batched study's execution figures."""
    arms = {
        "single": arm(
            "single", workers=1, allocated=1343.23, sent=109_000,
            process=1343.23, active=1304.90, active_plus_checkpoint=1320.11,
        ),
        "pair": arm(
            "pair", workers=2, allocated=1850.53, sent=151_628_000_000,
            process=925.27, active=875.56, active_plus_checkpoint=890.87,
        ),
    }  # fmt: skip
    distance = Distance(
        candidate="pair", reference="single", relative_l2=0.000322, max_abs=0.000801
    )
    return Measurements({}, arms, (distance,))
