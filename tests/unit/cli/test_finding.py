"""What a person may type for a plan or a run, and in which order help lists the commands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.app import app
from harness.cli.main import COMMANDS, HELP, _in_order
from harness.clock import Clock
from harness.display.progress import make_progress
from harness.errors import BadInput
from harness.finding import plan_name, run_folder
from harness.fleet.choice import FleetChoice
from harness.plan import load_plan
from harness.run import make_place, run_plan
from tests.toy_plan import toy_plan, write_plan


@pytest.mark.parametrize("given", ["toy", "plans/toy", "plans/toy/", "plans/toy/plan.json"])
def test_a_plan_is_named_by_its_name_its_folder_or_its_file(given: str) -> None:
    assert plan_name(given) == "toy"
    assert plan_name("") == ""


def test_a_run_is_named_by_its_folder_or_by_its_plan(tmp_path: Path) -> None:
    loaded = load_plan(write_plan(tmp_path, toy_plan(), repository=False))
    runs = tmp_path / "runs"
    with pytest.raises(BadInput, match="there are no runs"):
        run_folder(Path("toy"), runs)
    first = make_place(loaded, runs, Clock(), development=False).folder
    assert run_folder(first, runs) == first
    assert run_folder(Path("toy"), runs).resolve() == first
    second = make_place(loaded, runs, Clock(), development=False).folder
    assert run_folder(Path("toy"), runs).resolve() == second
    for wrong in (Path("other"), tmp_path, first / "run.json", Path("x" * 300)):
        with pytest.raises(BadInput, match="runs of toy"):
            run_folder(wrong, runs)


def test_a_run_on_aws_without_hosts_there_names_the_hosts_that_it_has(tmp_path: Path) -> None:
    loaded = load_plan(write_plan(tmp_path, toy_plan(), repository=False))
    with pytest.raises(BadInput, match="no AWS hosts") as caught:
        run_plan(
            loaded, tmp_path / "runs", make_progress(sys.stderr), Clock(),
            choice=FleetChoice("stack"),
        )  # fmt: skip
    assert caught.value.next_command.endswith("--local")


def test_a_runs_folder_whose_name_is_not_utf8_is_refused(tmp_path: Path) -> None:
    loaded = load_plan(write_plan(tmp_path, toy_plan(), repository=False))
    with pytest.raises(BadInput, match="not UTF-8"):
        make_place(loaded, tmp_path / "b\udcff", Clock(), development=False)


def test_help_lists_every_command_in_the_order_of_a_study() -> None:
    _in_order()
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    rows = [line.split() for line in shown.splitlines() if line.startswith("│ ")]
    names = [name for panel in HELP.values() for name in panel]
    assert [row[1] for row in rows if not row[1].startswith("-")] == names
    assert len(names) >= len(COMMANDS)
