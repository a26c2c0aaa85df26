"""How many bytes a plan will store, by arithmetic from its parameter count; rounded upwards."""

from __future__ import annotations

from harness.plan.plan import Plan
from harness.plan.recipe import Arm, PowerSGD

FP32_BYTES = 4
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


def stored_bytes(plan: Plan) -> int | None:
    """Everything that the store will hold: seed weights, every arm's, and the record."""
    weights = weight_bytes(plan)
    arms = [arm_bytes(plan, arm) for arm in plan.arms]
    if weights is None:
        return None
    return weights + sum(each for each in arms if each is not None) + RECORD_BYTES
