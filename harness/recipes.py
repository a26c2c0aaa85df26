"""From the plan to a trainer's recipe (docs/contract.md). Pure."""

from __future__ import annotations

from typing import Any

from harness.plan import Plan
from harness.plan.recipe import Arm
from trainer import contract


def _common(task: str, device: str, threads: int) -> dict[str, Any]:
    return {"contract": contract.CONTRACT, "task": task, "device": device, "threads": threads}


def _carried(transport: str | None, workers: int) -> dict[str, Any]:
    """What carries exchanges, told only where there are any and the plan says so."""
    return {"transport": transport} if transport and workers > 1 else {}


def check(
    plan: Plan, *, device: str, threads: int, transport: str | None = None, workers: int = 1
) -> dict[str, Any]:
    """The weighted-update check and the all-reduce."""
    carried = _carried(transport, workers)
    return {**_common("check", device, threads), "seed": f"{plan.seed}/check", **carried}


def train(
    plan: Plan, arm: Arm, *, microbatch: int, device: str, threads: int,
    transport: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One arm's training."""
    shared = plan.recipe
    stored = shared.checkpoints
    every = {} if stored is None else {"checkpoint": {"every_updates": stored.every_updates}}
    return {
        **_common("train", device, threads),
        "seed": f"{plan.seed}/train",
        "arm": arm.name,
        "corpus": arm.corpus,
        "updates": shared.updates,
        "microbatch": microbatch,
        "optimizer": shared.optimizer.model_dump(mode="json"),
        "schedule": shared.schedule.model_dump(mode="json"),
        "clip_norm": shared.clip_norm,
        "autocast": shared.autocast,
        "checkpointing": shared.checkpointing,
        "exchange": _exchange(arm),
        "preserve": arm.preserve,
        **every,
        **_carried(transport, arm.workers),
        **({"packed": shared.packed.model_dump(mode="json")} if shared.packed else {}),
    }


def _exchange(arm: Arm) -> dict[str, Any]:
    """Fields that came later are told only where the plan gives them: a trainer that does not
    know them can still run every plan that does not use them.
    """
    told = arm.exchange.model_dump(mode="json", exclude_none=True)
    return {
        name: value for name, value in told.items() if name not in _LATER or value != _LATER[name]
    }


_LATER = {"factors": "fp32", "dense_precision": "fp32"}
"""Fields of an exchange that may be left out, and what they then mean."""


def probe(
    plan: Plan, arm: Arm, *, microbatch: int, device: str, threads: int, trial_updates: int,
    transport: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A short trial of an arm's training."""
    recipe = train(
        plan, arm, microbatch=microbatch, device=device, threads=threads, transport=transport
    )
    return {**recipe, "task": "probe", "trial_updates": trial_updates}


def evaluate(
    plan: Plan, *, roles: tuple[str, ...], probes: tuple[str, ...], end_tokens: tuple[int, ...],
    device: str, threads: int, batch: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Greedy generation for whole roles and retention losses. `batch` in place of the plan's."""
    return {
        **_common("evaluate", device, threads),
        "cases": list(roles),
        "retention": list(probes),
        "max_new_tokens": plan.evaluation.max_new_tokens,
        "batch": plan.evaluation.batch if batch is None else batch,
        "end_tokens": list(end_tokens),
        "autocast": plan.evaluation.autocast,
    }


SERVED_BODY_BYTES = 1 << 20
"""A request with a longer body is refused: about 150,000 token ids."""


def serve(
    plan: Plan, *, parameter_root: str, end_tokens: tuple[int, ...], device: str, threads: int
) -> dict[str, Any]:
    """One replica of the candidate. The plan must declare serving."""
    serving = plan.serving
    assert serving is not None
    return {
        **_common("serve", device, threads),
        "parameter_root": parameter_root,
        "max_new_tokens": serving.max_new_tokens,
        "context": plan.recipe.context_tokens,
        "end_tokens": list(end_tokens),
        "slots": serving.slots_in_use,
        "queue": serving.queue_in_use,
        "body_bytes": SERVED_BODY_BYTES,
        "cache": serving.cache,
        "autocast": serving.autocast,
    }


def compare(*, against: str, device: str, threads: int) -> dict[str, Any]:
    """Two candidates' parameters."""
    return {**_common("compare", device, threads), "against": against}


def seed(source: dict[str, Any]) -> dict[str, Any]:
    """Conversion of a model source."""
    return {**_common("seed", "cpu", 0), "source": source, "threads": None}


def file_hash(recipe: dict[str, Any]) -> str:
    """Hash of the recipe file as `contract.write_json` writes it (receipts' recipe_sha256)."""
    return contract.sha256(contract.canonical(recipe) + b"\n")
