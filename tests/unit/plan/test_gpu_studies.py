"""The studies of the 135M model on GPUs: what they declare, what development may change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.plan.shipped import PLANS, shipped
from tests.unit.plan.test_seed_studies import at

BATCHED, COOPERATIVE = "batched-learning-135m", "cooperative-learning-135m"
STUDIES = [name + more for name in (BATCHED, COOPERATIVE) for more in ("", "-one-gpu")]
RATES = {"lr-3e-5": 3e-5, "lr-1e-4": 1e-4, "lr-3e-4": 3e-4}


def read(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((PLANS / name / "plan.json").read_bytes())
    return value


@pytest.mark.parametrize("name", STUDIES)
def test_check_finds_nothing_wrong(name: str) -> None:
    report = shipped(name)
    assert report.fleet_kind == "local"
    assert [(each.pointer, each.what) for each in report.findings] == []


@pytest.mark.parametrize("name", STUDIES)
def test_retention_is_decided_on_text_unlike_the_replay(name: str) -> None:
    plan = read(name)
    deciding = [
        each["probes"]
        for each in plan["decisions"]
        if each["statistic"] == "retention-difference" and not each.get("exploratory")
    ]
    assert deciding == ["passages"]
    assert plan["data"]["replay"]["kind"] == "generated"
    assert at(name, "/data/retention/@passages/source/kind") == "passages"
    assert at(name, "/data/retention/@passages/count") == 128
    assert at(name, "/data/retention/@like-replay/source/kind") == "generated"


@pytest.mark.parametrize("name", STUDIES)
def test_arithmetic_and_held_out_wordings_are_reported(name: str) -> None:
    assert at(name, "/decisions/@totals/scope/families") == ["total"]
    assert at(name, "/decisions/@held-out-wordings/scope/wordings") == "held-out"
    assert at(name, "/environment") == "as-found"
    assert at(name, "/hosts/local/device") == "cuda"
    assert at(name, "/data/roles/development") >= 64


@pytest.mark.parametrize("more", ["", "-one-gpu"])
@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/data/roles/train_tasks", 6144),
        ("/data/roles/train_replay", 2048),
        ("/data/roles/test", 1024),
        ("/recipe/updates", 128),
        ("/recipe/global_batch", 256),
        ("/recipe/packed/compiled", True),
        ("/arms/@pair/exchange/kind", "powersgd"),
        ("/arms/@pair/exchange/rank", 32),
        ("/arms/@pair/exchange/dense_updates", 8),
        ("/arms/@single/workers", 1),
        ("/decisions/@pair-not-worse/margin", -0.03),
        ("/decisions/@pair-retention/margin", 0.02),
    ],
)
def test_the_batched_study_has_the_size_of_its_model(
    more: str, pointer: str, value: object
) -> None:
    assert at(BATCHED + more, pointer) == value


@pytest.mark.parametrize("more", ["", "-one-gpu"])
@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/data/roles/train_tasks", 768),
        ("/data/roles/train_replay", 256),
        ("/data/roles/test", 256),
        ("/recipe/global_batch", 8),
        ("/data/damage/modulus", 4),
        ("/arms/@clean/workers", 1),
        ("/arms/@damaged/corpus", "damaged"),
        ("/arms/@pair/workers", 2),
        ("/serving/requests", 32),
        ("/serving/phases/@one-replica/replicas", 1),
        ("/serving/phases/@two-replicas/replicas", 2),
        ("/serving/phases/@one-stopped/fault", "stopped"),
    ],
)
def test_the_cooperative_study_has_the_size_of_its_model(
    more: str, pointer: str, value: object
) -> None:
    assert at(COOPERATIVE + more, pointer) == value


@pytest.mark.parametrize("name", STUDIES)
def test_nothing_is_decided_on_speed_where_a_gpu_is_shared(name: str) -> None:
    shared = name.endswith("-one-gpu")
    assert (read(name)["hosts"]["local"].get("transport") == "gloo") is shared
    fast = [
        each["name"]
        for each in read(name)["decisions"]
        if each["statistic"] in ("speed-ratio", "cost-ratio", "serving-throughput-ratio")
        and not each.get("exploratory")
    ]
    assert bool(fast) is not shared


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", STUDIES)
def test_development_tries_a_rate_on_the_study_and_decides_nothing(name: str, rate: str) -> None:
    """So that a rate is chosen for the study that is run, and its attempts go into its record."""
    study, trial = read(name), read(f"{name}/{rate}")
    assert shipped(f"{name}/{rate}").errors == ()
    assert trial["recipe"]["optimizer"].pop("lr") == RATES[rate]
    assert study["recipe"]["optimizer"].pop("lr") in RATES.values()
    for same in ("name", "seed", "model", "data", "recipe", "environment", "chat"):
        assert trial[same] == study[same], same
    assert trial["arms"] == [arm for arm in study["arms"] if arm["name"] in ("single", "clean")]
    assert trial["decisions"] == []
