"""`harness init` makes a plan that loads, with its own name and seed, and overwrites nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.init import SHIPPED, make_plan, shipped_plans
from harness.plan import load_plan
from harness.plan.check import check_plan


@pytest.mark.parametrize("base", shipped_plans())
def test_only_name_and_seed_differ_from_the_base(tmp_path: Path, base: str) -> None:
    path = make_plan("my-study", tmp_path, base=base)
    assert path == tmp_path / "my-study" / "plan.json"
    made = json.loads(path.read_bytes())
    original = json.loads((SHIPPED / base / "plan.json").read_bytes())
    assert (made.pop("name"), made.pop("seed")) == ("my-study", "my-study-1")
    assert original.pop("name") == base and original.pop("seed")
    assert made == original


def test_the_new_plan_loads_and_checks(tmp_path: Path) -> None:
    report = check_plan(load_plan(make_plan("my-study", tmp_path)))
    assert (report.plan, report.errors) == ("my-study", ())
    assert report.plan_hash != load_plan(SHIPPED / "quickstart").hash


def test_the_readme_names_the_next_commands(tmp_path: Path) -> None:
    path = make_plan("my-study", tmp_path)
    text = path.with_name("README.md").read_text()
    for command in (f"check {path}", f"prepare {path}", f"run {path} --local"):
        assert f"harness {command}" in text
    aws = make_plan("on-aws", tmp_path, base="batched-learning").with_name("README.md").read_text()
    assert "--local" not in aws


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = make_plan("my-study", tmp_path)
    path.write_text("mine")
    with pytest.raises(BadInput) as caught:
        make_plan("my-study", tmp_path)
    assert caught.value.where == str(path.parent) and "already there" in caught.value.what
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["", "My Study", "../up", "a" * 41, "-a", "a_b", "plan.json"])
def test_a_bad_name_writes_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="lower-case words"):
        make_plan(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_base_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'nothing' .*quickstart"):
        make_plan("my-study", tmp_path, base="nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_nothing_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="cannot be made"):
        make_plan("my-study", tmp_path / "file")


def test_a_plan_file_can_be_the_base(tmp_path: Path) -> None:
    first = make_plan("first", tmp_path, base="communication")
    for base in (str(first), f"{first.parent}/"):
        second = make_plan(f"from-{len(base)}", tmp_path, base=base)
        assert load_plan(second).plan.arms == load_plan(first).plan.arms


def test_paths_of_the_base_still_lead_to_the_same_place(tmp_path: Path) -> None:
    value = json.loads((SHIPPED / "quickstart" / "plan.json").read_bytes())
    value["trainer"] = {"kind": "tree", "path": "../trainers/mine"}
    base = tmp_path / "studies" / "one" / "plan.json"
    base.parent.mkdir(parents=True)
    base.write_text(json.dumps(value))
    made = make_plan("my-study", tmp_path / "plans", base=str(base))
    path = json.loads(made.read_bytes())["trainer"]["path"]
    assert (made.parent / path).resolve() == tmp_path / "studies" / "trainers" / "mine"


def test_a_broken_base_is_bad_input_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(BadInput) as caught:
        make_plan("my-study", tmp_path, base=str(tmp_path / "bad.json"))
    assert str(tmp_path / "bad.json") in caught.value.where
    assert not (tmp_path / "my-study").exists()


def test_the_shipped_plans_are_the_four() -> None:
    assert set(shipped_plans()) >= {
        "quickstart",
        "cooperative-learning",
        "batched-learning",
        "communication",
    }
