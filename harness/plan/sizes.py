"""How many bytes a plan will store, by arithmetic from its parameter count; rounded upwards."""

from __future__ import annotations

from harness.plan.plan import Plan
from harness.plan.recipe import Arm, LocalWindows, PowerSGD

FP32_BYTES = 4
BF16_BYTES = 2
MOMENTS = 2
"""AdamW keeps two values a parameter."""
RECORD_BYTES = 10**9
"""Prepared inputs, answers, losses, logs, archive and tokenizer: far below this in both seed
studies (the larger archive had 12 MB)."""


def weight_bytes(plan: Plan) -> int | None:
    """One set of FP32 weights; None when the plan does not say how many parameters there are."""
    parameters = plan.model.parameters
    return None if parameters is None else parameters * FP32_BYTES


def arm_bytes(plan: Plan, arm: Arm) -> int | None:
    """What an arm leaves in the store.

    weights: FP32 parameters. full-state: those, both moments, and with error feedback one error a
    parameter for every worker; so 4 x the weights for one error, 5 x for a pair.
    """
    weights = weight_bytes(plan)
    if weights is None or arm.preserve == "weights":
        return weights
    exchange = arm.exchange
    errors = arm.workers if isinstance(exchange, PowerSGD) and exchange.error_feedback else 1
    return weights * (1 + MOMENTS + errors)


def state_bytes(plan: Plan, arm: Arm) -> int | None:
    """What one worker's checkpoint takes: parameters, moments, what its exchange keeps."""
    weights = weight_bytes(plan)
    if weights is None:
        return None
    kept = 2 if isinstance(arm.exchange, LocalWindows | PowerSGD) else 0
    return weights * (1 + MOMENTS + kept)


def checkpoint_disk_bytes(plan: Plan) -> int:
    """What checkpoints may take on a host: two at once for every attempt at every arm."""
    if plan.recipe.checkpoints is None:
        return 0
    return sum(2 * arm.attempts * (state_bytes(plan, arm) or 0) for arm in plan.arms)


def checkpoint_stored_bytes(plan: Plan) -> int:
    """What checkpoints leave in the store; repeated ones are the same objects."""
    every = plan.recipe.checkpoints
    if every is None or not every.off_host:
        return 0
    count = (plan.recipe.updates - 1) // every.every_updates
    return sum(count * arm.workers * (state_bytes(plan, arm) or 0) for arm in plan.arms)


def stored_bytes(plan: Plan) -> int | None:
    """Everything that the store may hold: seed weights, every arm's, checkpoints, the record."""
    weights = weight_bytes(plan)
    arms = [arm_bytes(plan, arm) for arm in plan.arms]
    if weights is None:
        return None
    kept = weights + sum(each for each in arms if each is not None) + RECORD_BYTES
    return kept + checkpoint_stored_bytes(plan)
