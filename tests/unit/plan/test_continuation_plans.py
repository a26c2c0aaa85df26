"""Plans whose arms start from an earlier study's candidate: the shipped ones, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BadInput
from harness.inputs.cohorts import parent_plan
from harness.plan import load_plan
from harness.plan.data import EarlierTests
from tests.unit.plan.shipped import PLANS, loaded, report, shipped

SHIPPED = ["continuation-135m", "continuation-135m-one-gpu"]
ONE = SHIPPED[1]
RATES = {"lr-3e-5": 3e-5, "lr-1e-4": 1e-4, "lr-3e-4": 3e-4}


@pytest.mark.parametrize("name", SHIPPED)
def test_check_finds_nothing_wrong(name: str) -> None:
    found = shipped(name)
    assert found.fleet_kind == "local"
    assert [(each.pointer, each.what) for each in found.findings] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_only_the_start_differs_between_the_arms(name: str) -> None:
    continued, fresh = load_plan(PLANS / name).plan.arms
    assert (continued.start, fresh.start) == ("parent", "seed")
    same = {"name": "", "start": None}
    assert continued.model_copy(update=same) == fresh.model_copy(update=same)


@pytest.mark.parametrize("name", SHIPPED)
def test_gain_and_both_retentions_are_decided_against_the_fresh_start(name: str) -> None:
    plan = load_plan(PLANS / name).plan
    deciding = {
        (each.statistic, each.probes): (each.candidate, each.reference)
        for each in plan.decisions
        if not each.exploratory and each.statistic != "parameter-agreement"
    }
    assert deciding == dict.fromkeys(
        [
            ("accuracy-difference", None),
            ("retention-difference", "first-cohort"),
            ("retention-difference", "passages"),
        ],
        ("continued", "fresh"),
    )
    assert plan.data.roles.train_earlier
    (first,) = (p for p in plan.data.retention if isinstance(p.source, EarlierTests))
    assert first.name == "first-cohort"


@pytest.mark.parametrize("more", ["", *RATES])
@pytest.mark.parametrize("name", SHIPPED)
def test_the_parents_plan_is_the_one_that_is_named(name: str, more: str) -> None:
    plan = load_plan(PLANS / name / more)
    assert plan.plan.parent is not None
    earlier = parent_plan(plan.plan.parent, plan.folder)
    assert earlier.plan.seed != plan.plan.seed
    assert earlier.plan.model == plan.plan.model
    assert earlier.plan.chat == plan.plan.chat


@pytest.mark.parametrize("name", SHIPPED)
def test_the_plan_that_makes_the_parent_again_is_the_first_one_to_the_byte(name: str) -> None:
    """In a folder of its own: prepared.json beside the first is bound to the trainer of its day."""
    parent = load_plan(PLANS / name).plan.parent
    assert parent is not None
    again = (PLANS / name / parent.plan).resolve()
    assert again.read_bytes() == (PLANS / parent.study / "plan.json").read_bytes()
    assert not again.samefile(PLANS / parent.study / "plan.json")


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", SHIPPED)
def test_the_rate_is_developed_on_the_fresh_start(name: str, rate: str) -> None:
    study, trial = (json.loads((PLANS / at / "plan.json").read_text()) for at in
                    (name, f"{name}/{rate}"))  # fmt: skip
    assert shipped(f"{name}/{rate}").errors == ()
    assert trial["recipe"]["optimizer"].pop("lr") == RATES[rate]
    assert study["recipe"]["optimizer"].pop("lr") in RATES.values()
    for same in ("name", "seed", "model", "data", "recipe", "environment", "chat"):
        assert trial[same] == study[same], same
    assert trial["arms"] == [arm for arm in study["arms"] if arm["name"] == "fresh"]
    assert trial["decisions"] == []


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"/arms/0/start": "parent"}, "/arms/0/start", "the plan names none"),
        ({"/arms/0/start": "elsewhere"}, "/arms/0/start", "'seed' or 'parent'"),
        ({"/data/roles/train_earlier": 8}, "/data/roles/train_earlier", "no parent"),
        (
            {"/data/retention/0/source": {"kind": "earlier-test"}},
            "/data/retention/0/source",
            "no parent",
        ),
        ({"/decisions/0/reference": "parent"}, "/decisions/0/reference", "unknown"),
    ],
)
def test_a_parent_that_is_not_named_cannot_be_used(
    tmp_path: Path, changes: dict[str, Any], pointer: str, words: str
) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        loaded(tmp_path, "batched-learning-135m-one-gpu", changes)
    assert caught.value.where.endswith(f"#{pointer}")


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"/arms/1/name": "parent"}, "/arms/1/name", "the model that the plan names"),
        ({"/parent/parameter_root": "abc"}, "/parent/parameter_root", "SHA-256"),
        ({"/parent/bytes": 0}, "/parent/bytes", "1"),
    ],
)
def test_a_mistake_about_the_parent_is_shown_where_it_stands(
    tmp_path: Path, changes: dict[str, Any], pointer: str, words: str
) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        loaded(tmp_path, ONE, changes)
    assert caught.value.where.endswith(f"#{pointer}")


def test_a_study_without_a_fresh_start_is_warned_of(tmp_path: Path) -> None:
    found = report(tmp_path, ONE, {"/arms/1/start": "parent"})
    assert [each.pointer for each in found.warnings] == ["/arms"]


def test_the_parent_has_no_training_times_to_decide_by(tmp_path: Path) -> None:
    decision = {
        "name": "faster", "claim": "It is faster.", "statistic": "speed-ratio",
        "candidate": "continued", "reference": "parent", "bound": "at-least", "margin": 1,
        "timer": "process",
    }  # fmt: skip
    found = report(tmp_path, ONE, {"/decisions/3": decision})
    assert [each.pointer for each in found.errors] == ["/decisions/3/reference"]
