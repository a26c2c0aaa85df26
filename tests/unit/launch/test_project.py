"""What `harness init` writes for `pulumi up`, and where a plan's project is found."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import yaml

from harness.errors import BadInput
from harness.init import STATE, make_plan, make_project
from harness.launch.stack_file import project_folder


def test_an_aws_plan_brings_a_project_beside_its_folder_of_plans(tmp_path: Path) -> None:
    path = make_plan("mine", tmp_path / "plans", base="batched-learning")
    project = yaml.safe_load((tmp_path / "Pulumi.yaml").read_text())
    assert project["name"] == "harness" and project["options"]["refresh"] == "always"
    assert project["backend"]["url"] == f"file://./{STATE}" and (tmp_path / STATE).is_dir()
    assert project_folder(path.parent) == tmp_path.resolve()
    text = path.with_name("README.md").read_text()
    for verb in ("admit", "up", "run", "down"):
        assert f"harness {verb} {path}" in text


def test_a_project_that_is_there_is_left_alone_and_a_local_plan_brings_none(
    tmp_path: Path,
) -> None:
    make_plan("local", tmp_path / "plans")
    assert not (tmp_path / "Pulumi.yaml").exists()
    (tmp_path / "Pulumi.yaml").write_text("mine")
    assert make_project(tmp_path) is None
    make_plan("mine", tmp_path / "plans", base="batched-learning")
    assert (tmp_path / "Pulumi.yaml").read_text() == "mine"


def test_the_program_is_the_one_that_comes_with_harness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path)
    ran: list[str] = []
    monkeypatch.setattr(runpy, "run_module", lambda name, run_name: ran.append(name))
    exec((tmp_path / "stack" / "__main__.py").read_text(), {})
    assert ran == ["infra"]
    assert (Path(__file__).parents[3] / "infra" / "__main__.py").exists()


def test_without_a_project_the_next_command_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no Pulumi") as error:
        project_folder(tmp_path)
    assert error.value.next_command.startswith("harness init")
