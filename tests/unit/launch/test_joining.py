"""A run finds its living fleet or the next command; a later plan must fit what is left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.clock import Clock
from harness.cloud.clients import Aws
from harness.errors import Refused, Waiting
from harness.fleet.stack import inner_deadline
from harness.launch import closing
from harness.launch.admit import admit_plan
from harness.launch.fleets import FleetPlace
from harness.launch.joining import fleet_for, join
from harness.launch.preserved import waiting_for
from harness.plan import LoadedPlan, load_plan
from infra import user_data
from tests.toy_plan import write_plan
from tests.unit.infra.fleet import admitted
from tests.unit.launch.aws import aws_plan

NOW = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)


def at(seconds: float) -> Clock:
    return Clock(now=lambda: NOW + timedelta(seconds=seconds))


@pytest.fixture
def place(aws: Aws, loaded: LoadedPlan, tmp_path: Path) -> FleetPlace:
    return admit_plan(loaded, tmp_path / "runs", aws, at(0), address="198.51.100.7").place


def later(tmp_path: Path, budget: dict[str, Any] | None = None, **hosts: Any) -> LoadedPlan:
    plan = aws_plan(**hosts)
    plan["name"] = "later"
    plan["budget"] |= budget or {}
    return load_plan(write_plan(tmp_path, plan, repository=False))


def test_without_a_fleet_the_next_command_is_said(loaded: LoadedPlan, tmp_path: Path) -> None:
    with pytest.raises(Waiting, match="no live fleet") as error:
        fleet_for(loaded, tmp_path / "runs", "", at(0))
    assert error.value.next_command.startswith("harness up")


def test_a_passed_deadline_is_no_living_fleet(
    place: FleetPlace, loaded: LoadedPlan, tmp_path: Path
) -> None:
    with pytest.raises(Waiting, match="past its deadline") as error:
        fleet_for(loaded, tmp_path / "runs", "", at(1801))
    assert error.value.next_command.startswith("harness down")


def test_two_studies_are_recorded_once_each_and_the_gate_waits_for_both(
    place: FleetPlace, loaded: LoadedPlan, tmp_path: Path
) -> None:
    other = later(tmp_path)
    for _ in range(2):
        join(place, loaded, "run-1", tmp_path / "runs" / "toy" / "run-1", at(1))
        added = join(place, other, "run-2", tmp_path / "runs" / "later" / "run-2", at(2))
    assert [study.run for study in place.studies()] == ["run-1", "run-2"]
    assert len(waiting_for(place)) == 2
    assert added.total_usd < place.admitted.bound.total_usd
    found = closing.resources(place, at(3).utc())
    stored = [line.what for line in found.lines if line.what.startswith("S3 storage")]
    assert len(stored) == 2 and stored[1].endswith(", run run-2"), "each study's own"


@pytest.mark.parametrize(
    ("hosts", "budget", "seconds", "word"),
    [
        ({"types": ["g6e.4xlarge"]}, {}, 1, "does not allow g6e.xlarge"),
        ({}, {"ceiling_usd": "0.000001"}, 1, "over the fleet's ceiling"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(
    place: FleetPlace, tmp_path: Path, hosts: dict[str, Any], budget: dict[str, Any],
    seconds: float, word: str,
) -> None:  # fmt: skip
    with pytest.raises(Refused, match=word):
        join(place, later(tmp_path, budget, **hosts), "run-2", tmp_path, at(seconds))
    assert place.studies() == ()


def test_the_inner_deadline_is_what_the_host_itself_says() -> None:
    utc = "2026-11-29T22:00:00.500000Z"
    guard = user_data.guest_file(admitted().model_copy(update={"deadline_utc": utc}), "guard.sh")
    epoch = int(guard.split("deadline=")[1].split()[0])
    assert epoch == int(datetime(2026, 11, 29, 22, 0, 1, tzinfo=UTC).timestamp())
    assert inner_deadline("host-0", ["enabled", "active", f"deadline={epoch}"], utc).armed
    assert not inner_deadline("host-0", ["enabled", "active", f"deadline={epoch + 60}"], utc).armed
    assert not inner_deadline("host-0", ["enabled", "failed", f"deadline={epoch}"], utc).armed
    assert not inner_deadline("host-0", ["waited too long"], utc).armed
