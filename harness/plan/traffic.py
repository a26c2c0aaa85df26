"""How many bytes an arm's dense updates send, by arithmetic."""

from __future__ import annotations

from harness.plan.plan import Plan
from harness.plan.recipe import Arm, LocalWindows, PowerSGD
from harness.plan.sizes import BF16_BYTES, FP32_BYTES


def dense_updates(plan: Plan, arm: Arm) -> int:
    """Updates of an arm that exchange every gradient, or every parameter's move, whole."""
    if isinstance(arm.exchange, PowerSGD):
        return min(arm.exchange.dense_updates, plan.recipe.updates)
    if isinstance(arm.exchange, LocalWindows):
        return plan.recipe.updates // arm.exchange.window
    return plan.recipe.updates if arm.exchange.kind == "dense" else 0


def dense_bytes(plan: Plan, arm: Arm) -> int | None:
    """Bytes that all workers together send in dense updates; None when the model's size is unknown.

    A ring all-reduce of n workers sends 2 (n - 1) times the gradients in all: for the pair of the
    two-GPU study 1.752 TB, where 1.775 TB were counted with everything else.
    """
    parameters = plan.model.parameters
    if parameters is None:
        return None
    narrow = isinstance(arm.exchange, PowerSGD) and arm.exchange.dense_precision == "bf16"
    number_bytes = BF16_BYTES if narrow else FP32_BYTES
    return 2 * (arm.workers - 1) * parameters * number_bytes * dense_updates(plan, arm)
