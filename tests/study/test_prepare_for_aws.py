"""Inputs are prepared before there is a fleet, also for a plan that only knows AWS."""

from __future__ import annotations

from pathlib import Path

from tests.study.conftest import Desk
from tests.toy_plan import write_plan
from tests.unit.launch.aws import aws_plan


def test_a_plan_with_aws_hosts_only_is_prepared_on_this_computer(tmp_path: Path) -> None:
    plan = aws_plan()
    plan["model"]["parameters"] = 66
    del plan["hosts"]["local"]
    desk = Desk(tmp_path, write_plan(tmp_path, plan))
    done = desk.harness("prepare", str(desk.plan))
    assert done.code == 0, done.err
    assert (desk.plan.parent / "prepared.json").exists()
    refused = desk.harness("run", str(desk.plan))
    assert refused.code == 4
    assert "there is no live fleet" in refused.err and "next: harness up" in refused.err
