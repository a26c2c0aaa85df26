"""SIGKILL around the entries of a fleet's journal, each followed by the same command.

CI kills once at a point of each kind; HARNESS_ALL_KILLS=1 (`make test-all`) walks through every
entry of provisioning and teardown in every mode. Both numbers are printed; that of all points is
counted from the entries that were really written.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from harness.cloud.residue import residue
from harness.launch.record import open_try, tries
from tests.engine.fleets.workshop import ALIVE, Workshop

MOST_KILLS = 60
ALL = os.environ.get("HARNESS_ALL_KILLS") == "1"
FEW = ("effect:host/1/0/1,torn:up/", "intent:end/")
"""Provisioning: the second host is launched and nobody knows its id; then all stands and half a
line says so. Teardown: the gate is open and the end of the hosts is only intended."""
POINTS = [(each, each) for each in ("intent", "effect", "torn")] if ALL else [FEW]
LEAST = (4, 2) if ALL else (2, 1)
"""Kills while provisioning and while taking down."""


def until_done(workshop: Workshop, mode: str, verb: str) -> int:
    """Type the command until it is not killed any more; returns how often it was."""
    for kills in range(MOST_KILLS):
        done = workshop.killed(mode, verb)
        slots = workshop.slots(*ALIVE)
        assert len(slots) == len(set(slots)), f"two hosts for a slot: {slots}, {kills + 1} kills"
        if done.code != -signal.SIGKILL:
            assert done.code == 0, done.err + done.out
            return kills
    raise AssertionError(f"still killed after {MOST_KILLS} times")


def require_whole(workshop: Workshop) -> None:
    """A complete fleet, every host of it known, nothing else alive."""
    alive = {host["InstanceId"] for host in workshop.instances(*ALIVE)}
    assert workshop.slots(*ALIVE) == ["0", "1"] and len(alive) == 2
    assert tries(workshop.entries)[-1].result == "complete"
    assert open_try(workshop.entries) is None


def require_nothing_left(workshop: Workshop) -> None:
    """Nothing of the fleet is there, and every host that ever was is in resources.json."""
    assert workshop.slots(*ALIVE) == []
    assert residue(workshop.aws, workshop.admitted.fleet) == ()
    resources = workshop.resources()
    assert resources.state == "final"
    every = {host["InstanceId"] for host in workshop.instances()}
    assert {host.id for host in resources.hosts} == every, "no id is lost"
    assert all(host.ended_utc for host in resources.hosts)


@pytest.mark.parametrize(("while_up", "while_down"), POINTS)
def test_killed_and_typed_again_it_is_one_fleet_and_then_none(
    workshop: Workshop,
    while_up: str,
    while_down: str,
    record_property: Callable[[str, object], None],
) -> None:
    up = until_done(workshop, while_up, "up")
    require_whole(workshop)
    down = until_done(workshop, while_down, "down")
    require_nothing_left(workshop)
    killed, every = workshop.kill_points(), workshop.kill_points("memory.all")
    if ALL:
        every = {each for each in every if each.startswith(f"{while_up} ")}
        assert killed == every
    record_property(
        "said",
        f"kills ({while_up}): {up} while provisioning, {down} while taking down, at {len(killed)} "
        f"of the {len(every)} points of {'this mode' if ALL else 'all modes (make test-all)'}",
    )
    assert (up, down) >= LEAST and down >= LEAST[1]
