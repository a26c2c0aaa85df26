"""A second study that goes on from a candidate of the first, beside a fresh start."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from harness.plan import load_plan
from harness.prepared import Prepared
from harness.receipts import TrainReceipt
from harness.results import Results
from harness.selection import Selection
from harness.strict import load_file
from tests.study.conftest import Desk, make_desk_in
from tests.toy_plan import PLAN, write_plan

SINGLE = PLAN["arms"][0]
PROBES = [
    {"name": "prose", "source": {"kind": "passages"}, "count": 4},
    {"name": "first-cohort", "source": {"kind": "earlier-test"}, "count": 8},
]


def contrast(name: str, statistic: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "claim": "It is no worse.", "statistic": statistic,
        "candidate": "continued", "reference": "fresh", "z": 2.576, **more,
    }  # fmt: skip


DECISIONS = [
    contrast("new-tasks", "accuracy-difference", bound="lower", margin=-0.5),
    contrast("keeps-first", "retention-difference", bound="upper", margin=5, probes="first-cohort"),
    contrast("keeps-prose", "retention-difference", bound="upper", margin=5, probes="prose"),
    {
        **contrast("still-knows", "retention-difference", bound="upper", margin=5),
        "reference": "parent",
        "probes": "first-cohort",
    },
]


def first_study(folder: Path, **changes: Any) -> Desk:
    """The first study, run: one arm."""
    desk = make_desk_in(folder, arms=[SINGLE], decisions=[], **changes)
    done = desk.run()
    assert done.code == 0, done.err
    return desk


def second_plan(first: Desk, **changes: Any) -> dict[str, Any]:
    """A plan whose arm 'continued' starts from the first study's candidate."""
    (record,) = load_file(TrainReceipt, first.latest / "receipts" / "train.json").arms
    weights = next(f for f in record.candidate.files if f.name == "model.safetensors")
    plan: dict[str, Any] = json.loads(first.plan.read_text())
    plan |= {"name": "second", "seed": "toy-2", "decisions": DECISIONS}
    plan["parent"] = {
        "study": "toy", "run": first.latest.name, "candidate": "single",
        "parameter_root": record.candidate.parameter_root,
        "sha256": weights.sha256, "bytes": weights.bytes,
        "plan": "../toy/plan.json", "plan_hash": load_plan(first.plan).hash,
    }  # fmt: skip
    plan["arms"] = [
        {**SINGLE, "name": "continued", "start": "parent"},
        {**SINGLE, "name": "fresh", "start": "seed"},
    ]
    plan["data"]["roles"]["train_earlier"] = 8
    plan["data"]["retention"] = PROBES
    plan["data"]["exposed"] = [
        {"role": "retention", "reason": "They tell what is left of the first cohort."}
    ]
    plan.update(changes)
    return plan


def second_desk(first: Desk, plan: dict[str, Any]) -> Desk:
    return Desk(first.folder, write_plan(first.folder, plan, repository=False))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return first_study(tmp_path_factory.mktemp("continuation"))


@pytest.fixture(scope="module")
def second(first: Desk) -> Desk:
    desk = second_desk(first, second_plan(first))
    done = desk.run()
    assert done.code == 0, done.err
    return desk


def latest(desk: Desk) -> Path:
    return (desk.runs / desk.plan.parent.name / "latest").resolve()


def test_one_arm_starts_from_the_candidate_and_the_other_from_the_seed(
    first: Desk, second: Desk
) -> None:
    prepared = load_file(Prepared, second.plan.with_name("prepared.json"))
    (before,) = load_file(TrainReceipt, first.latest / "receipts" / "train.json").arms
    arms = load_file(TrainReceipt, latest(second) / "receipts" / "train.json").arms
    started = {arm.arm: {rank.model_root for rank in arm.ranks} for arm in arms}
    assert started == {
        "continued": {before.candidate.parameter_root},
        "fresh": {prepared.seed_model.parameter_root},
    }
    assert before.candidate.parameter_root != prepared.seed_model.parameter_root


def test_the_parent_is_scored_and_selected_like_the_others(second: Desk) -> None:
    results = load_file(Results, latest(second) / "results.json")
    assert [model.name for model in results.models] == ["reference", "parent", "continued", "fresh"]
    for model in results.models:
        assert model.overall.cases == 16
        assert set(model.retention) == {"prose", "first-cohort"}
    assert {each.name: each.value is not None for each in results.decisions} == dict.fromkeys(
        ("new-tasks", "keeps-first", "keeps-prose", "still-knows"), True
    )
    branch = f"harness/{latest(second).name}"
    path = f"plans/second/runs/{latest(second).name}/selection.json"
    selection = Selection.model_validate_json(second.git("show", f"{branch}:{path}"))
    assert selection.parent is not None
    assert selection.parent.parameter_root == results.models[1].parameter_root


def test_the_cohorts_share_no_case_and_what_is_used_again_is_said(
    first: Desk, second: Desk
) -> None:
    old = load_file(Prepared, first.plan.with_name("prepared.json"))
    new = load_file(Prepared, second.plan.with_name("prepared.json"))
    seen = {one for ids in old.exposure.values() for one in ids}
    for role in ("train", "development", "test"):
        assert not seen & set(new.exposure[role]), role
    again = seen & set(new.exposure["replay"])
    assert len(again) == 8 and again <= set(old.exposure["train"])
    assert len(set(new.exposure["retention"]) & set(old.exposure["test"])) == 8
    assert new.roles["train-earlier"] == 8
    said = " ".join(new.notes)
    assert "8 training tasks are of the earlier study 'toy'" in said
    assert "were in the role test of the earlier plan 'toy'" in said


def test_the_page_and_the_offline_check_know_the_parent(second: Desk) -> None:
    page = (latest(second) / "report" / "index.html").read_text()
    assert "the parent" in page or ">parent<" in page
    done = second.harness("verify", str(latest(second)))
    assert done.code == 0, done.err


def test_another_root_is_refused_before_anything_runs(first: Desk) -> None:
    plan = second_plan(first, name="other-root")
    plan["parent"]["parameter_root"] = "0" * 64
    done = second_desk(first, plan).run()
    assert done.code == 3, done.err
    assert "the plan names 0000" in done.err
    assert "harness run" in done.err and "plans/toy/plan.json" in done.err


def test_weights_that_are_nowhere_are_made_again_by_the_earlier_plan(first: Desk) -> None:
    plan = second_plan(first, name="lost-weights")
    plan["parent"]["sha256"] = "1" * 64
    done = second_desk(first, plan).run()
    assert done.code == 4, done.err
    assert "neither in the store" in done.err
    assert "harness run" in done.err and "plans/toy/plan.json" in done.err


def test_weights_come_from_a_folder_too(first: Desk, tmp_path: Path) -> None:
    """A store of its own, and the candidate's file beside the plan; a changed one is refused."""
    plan = second_plan(first, name="from-folder", seed="toy-3")
    digest = plan["parent"]["sha256"]
    stored = next(path for path in (first.runs / "store").rglob("*") if path.name == digest)
    weights = first.folder / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(stored.read_bytes())
    plan["parent"]["folder"] = "../../weights"
    desk = second_desk(first, plan)
    done = desk.harness("prepare", str(desk.plan), "--runs", str(tmp_path / "runs"))
    assert done.code == 0, done.err

    data = bytearray(stored.read_bytes())
    data[-1] ^= 1
    (weights / "model.safetensors").write_bytes(data)
    changed = {**copy.deepcopy(plan), "name": "changed-folder"}
    desk = second_desk(first, changed)
    done = desk.harness("prepare", str(desk.plan), "--runs", str(tmp_path / "other"))
    assert done.code == 3, done.err
    assert "has the parameter root" in done.err
