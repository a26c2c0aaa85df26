"""What checkpoints take, against figures worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plan import sizes
from harness.plan.plan import Plan
from tests.unit.plan.shipped import BATCHED, loaded, report

WEIGHTS = 4 * 1_711_376_384
WINDOWS = {"kind": "local-windows", "window": 16, "outer_lr": 0.7, "outer_momentum": 0.9}


def plan(folder: Path, **checkpoints: object) -> Plan:
    changes: dict[str, object] = {"/recipe/checkpoints": checkpoints} if checkpoints else {}
    return loaded(folder, BATCHED, changes).plan


def test_without_checkpoints_nothing_is_counted(tmp_path: Path) -> None:
    assert sizes.checkpoint_disk_bytes(plan(tmp_path)) == 0
    assert sizes.checkpoint_stored_bytes(plan(tmp_path)) == 0


def test_a_worker_keeps_parameters_moments_and_what_its_exchange_keeps(tmp_path: Path) -> None:
    pair, single = plan(tmp_path, every_updates=32).arms
    whole = plan(tmp_path, every_updates=32)
    assert sizes.state_bytes(whole, single) == 3 * WEIGHTS
    assert sizes.state_bytes(whole, pair) == 5 * WEIGHTS
    windows = loaded(tmp_path, BATCHED, {"/arms/0/exchange": WINDOWS}).plan
    assert sizes.state_bytes(windows, windows.arms[0]) == 5 * WEIGHTS


def test_two_at_once_lie_on_a_disk_and_all_of_them_in_the_store(tmp_path: Path) -> None:
    local = plan(tmp_path, every_updates=32)
    attempts = [arm.attempts for arm in local.arms]
    assert sizes.checkpoint_disk_bytes(local) == 2 * WEIGHTS * (5 * attempts[0] + 3 * attempts[1])
    assert sizes.checkpoint_stored_bytes(local) == 0
    away = plan(tmp_path, every_updates=32, off_host=True)
    # 128 updates: after 32, 64 and 96; one worker of 3 x the weights, two of 5 x.
    assert sizes.checkpoint_stored_bytes(away) == 3 * (3 + 2 * 5) * WEIGHTS
    before, after = sizes.stored_bytes(local), sizes.stored_bytes(away)
    assert before is not None and after == before + 39 * WEIGHTS


@pytest.mark.parametrize("every", [1, 32])
def test_a_disk_without_room_for_them_is_an_error(every: int, tmp_path: Path) -> None:
    found = report(tmp_path, BATCHED, {"/recipe/checkpoints": {"every_updates": every},
                                       "/hosts/aws/volume/gib": 200})  # fmt: skip
    assert "/hosts/aws/volume/gib" in {each.pointer for each in found.findings}
