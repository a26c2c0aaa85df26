"""What a stopped `harness run` says while hosts stand: also before the run has a folder."""

from __future__ import annotations

from pathlib import Path

from harness.cli.run import _still_runs
from harness.clock import Clock
from harness.cloud.clients import Aws
from harness.launch.admit import admit_plan
from harness.plan import LoadedPlan
from tests.unit.launch.test_wired import launch


def test_hosts_that_stand_before_there_is_a_run_are_said(
    aws: Aws, loaded: LoadedPlan, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    assert _still_runs(loaded.path, runs, False, None) == "Nothing of ours runs."
    place = admit_plan(loaded, runs, aws, Clock(), address="198.51.100.7").place
    assert "No host of" in _still_runs(loaded.path, runs, False, None)
    host = launch(aws, place, 0)
    said = _still_runs(loaded.path, runs, False, None)
    assert f"1 host(s) still run ({host}) and cost up to" in said
    assert f"End them with: harness down {loaded.path} --runs {runs}" in said
