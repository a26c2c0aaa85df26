"""Nothing but a proof opens an armed gate: not a changed plan, nor configuration, nor a target."""

from __future__ import annotations

from typing import Any

import pytest

from harness.fleet.admitted import Placement
from tests.engine.engine import Engine, outputs
from tests.engine.seen import Seen
from tests.engine.told import Told, changed


@pytest.mark.parametrize(
    "change",
    [
        {"deadline_utc": "2099-01-01T00:00:00.000000Z"},
        {"count": 1},
        {"placements": (Placement(type="g6e.2xlarge", zones=("us-east-1a", "us-east-1a")),)},
        {"fleet": "pair-2"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_nothing_is_touched_under_an_armed_gate(
    standing: tuple[Engine, Told, Seen], change: dict[str, Any]
) -> None:
    engine, told, seen = standing
    stands, fleet, calls = seen.everything(), told.fleet, len(told.calls)
    told.fleet = changed(fleet, **change)
    try:
        refused = engine.up(told.program)
    finally:
        told.fleet = fleet
    assert refused.code != 0
    assert "unable to replace resource" in refused.text
    assert "preservation-gate" in refused.text
    assert seen.everything() == stands
    assert told.calls[calls:] == ["admission"]


def test_a_preview_of_a_changed_plan_says_so(standing: tuple[Engine, Told, Seen]) -> None:
    engine, told, _ = standing
    fleet = told.fleet
    told.fleet = changed(fleet, count=3)
    try:
        refused = engine.preview(told.program)
    finally:
        told.fleet = fleet
    assert refused.code != 0
    assert "unable to replace resource" in refused.text


def test_a_host_cannot_be_replaced_or_destroyed_by_target(
    standing: tuple[Engine, Told, Seen],
) -> None:
    engine, told, seen = standing
    stands = seen.everything()
    (urn,) = [each["urn"] for each in engine.state() if each["urn"].endswith("Instance::host-0")]
    for refused in (
        engine.up(told.program, "--replace", urn),
        engine.up(told.program, "--target-replace", urn),
        engine.destroy("--target", urn),
        engine.destroy("--target", urn, "--target-dependents"),
    ):
        assert refused.code != 0, refused.text
    assert seen.everything() == stands


def test_a_new_image_or_new_user_data_is_no_change(standing: tuple[Engine, Told, Seen]) -> None:
    """A later version of the program does not replace hosts: only what was admitted counts."""
    engine, told, seen = standing
    stands = seen.everything()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infra.hosts.user_data", lambda admitted, slot: "#!/bin/sh\n")
        engine.preview(told.program, "--expect-no-changes").ok()
    assert seen.everything() == stands


def test_a_roaming_operator_changes_one_rule(standing: tuple[Engine, Told, Seen]) -> None:
    engine, told, seen = standing
    fleet, living = told.fleet, seen.living()
    told.fleet = changed(fleet, operator_cidr="198.51.100.9/32")
    engine.up(told.program).ok()
    assert ("in", "tcp 22-22", "198.51.100.9/32") in seen.rules(outputs(engine).security_group)
    assert seen.living() == living
    told.fleet = fleet
    engine.up(told.program).ok()
