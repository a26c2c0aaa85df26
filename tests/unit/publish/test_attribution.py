"""Every shipped plan's sources are attributed, and their licences known or asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.attribution import APACHE, own_licence, parts_of, seed_licence, third_party
from harness.plan import load_plan
from harness.plan.model import HubModel

PLANS = sorted((Path(__file__).parents[3] / "plans").rglob("plan.json"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: str(path.parent.name))
def test_a_shipped_plans_parts_have_a_maker_and_a_licence(path: Path) -> None:
    plan = load_plan(path).plan
    assert all(part.by and part.licence for part in parts_of(plan))
    assert seed_licence(plan) == APACHE
    told = third_party(plan, (), ("pair",))
    for part in parts_of(plan):
        assert part.source in told
    assert "Weights are here of pair" in told
    assert "trained further" in told


def test_a_model_that_harness_does_not_know_has_no_licence_of_ours() -> None:
    plan = load_plan(PLANS[0]).plan
    model = HubModel(kind="hub", repo="someone/model", revision="a" * 40)
    other = plan.model_copy(update={"model": model})
    assert seed_licence(other) == ""
    assert "not known to Harness" in third_party(other, (), ())


def test_harness_brings_its_own_licence() -> None:
    assert b"Apache License" in own_licence("LICENSE")
    assert own_licence("NOTICE")
