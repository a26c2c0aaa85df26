"""What carries exchanges is told to a trainer where there are any and the plan says so."""

from __future__ import annotations

from harness import recipes
from harness.plan import load_plan
from tests.unit.plan.shipped import PLANS
from trainer import recipe as trainers

ONE_GPU, TWO_GPUS = (
    load_plan(PLANS / f"batched-learning-135m{more}").plan for more in ("-one-gpu", "")
)


def test_the_pair_is_told_and_the_single_worker_is_not() -> None:
    told = {
        arm.name: recipes.train(
            ONE_GPU, arm, microbatch=2048, device="cuda", threads=1, transport="gloo"
        )
        for arm in ONE_GPU.arms
    }
    assert "transport" not in told["single"]
    assert trainers.from_value(told["pair"]).transport == "gloo"
    assert trainers.from_value(told["single"]).transport is None


def test_a_trainer_that_knows_no_transport_can_run_plans_that_name_none() -> None:
    arm = TWO_GPUS.arm("pair")
    assert "transport" not in recipes.train(
        TWO_GPUS, arm, microbatch=2048, device="cuda", threads=1
    )
    assert "transport" not in recipes.check(TWO_GPUS, device="cuda", threads=1, workers=2)
    probed = recipes.probe(
        ONE_GPU, ONE_GPU.arm("pair"), microbatch=2048, device="cuda", threads=1, trial_updates=2,
        transport="gloo",
    )  # fmt: skip
    assert probed["transport"] == "gloo"
