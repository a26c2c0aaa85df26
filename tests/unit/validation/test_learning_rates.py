"""The learning rate by update, worked out a second way, agrees with the trainer's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.plan import Plan
from harness.validation.losses import _learning_rate
from tests.unit.inputs.small_plans import small_plan
from trainer.recipe import Schedule
from trainer.schedule import lr_share


@given(
    kind=st.sampled_from(["constant", "linear", "cosine"]),
    updates=st.integers(1, 40),
    warmup=st.integers(0, 39),
    floor=st.floats(0.0, 0.5),
)
def test_it_is_the_trainers_schedule(kind: str, updates: int, warmup: int, floor: float) -> None:
    plan = with_schedule(small_plan(), kind, updates, min(warmup, updates - 1), floor)
    shape = plan.recipe.schedule
    own = Schedule(kind=shape.kind, warmup_updates=shape.warmup_updates, floor=shape.floor)
    for update in range(1, updates + 1):
        expected = plan.recipe.optimizer.lr * lr_share(own, update, updates)
        assert _learning_rate(plan, update) == pytest.approx(expected, rel=1e-9, abs=1e-18)


def with_schedule(plan: Plan, kind: str, updates: int, warmup: int, floor: float) -> Plan:
    schedule = plan.recipe.schedule.model_copy(
        update={"kind": kind, "warmup_updates": warmup, "floor": floor}
    )
    recipe = plan.recipe.model_copy(update={"updates": updates, "schedule": schedule})
    return plan.model_copy(update={"recipe": recipe})
