"""The outer deadline is proved word by word; anything else is a fault with a name."""

from __future__ import annotations

from typing import Any

import pytest

from harness.launch.outer import TERMINATE, fault

OTHER = '{"InstanceIds": ["i-2"]}'
DEADLINE = "2026-11-29T22:00:00.500000Z"


def schedule(**changes: Any) -> dict[str, Any]:
    return {
        "State": "ENABLED",
        "ScheduleExpression": "at(2026-11-29T22:00:00)",
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": TERMINATE, "RoleArn": "arn:x", "Input": '{"InstanceIds": ["i-1"]}'},
    } | changes


def test_a_schedule_that_ends_the_host_on_time_has_no_fault() -> None:
    assert fault(schedule(), "i-1", DEADLINE) == ""


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"State": "DISABLED"}, "DISABLED"),
        ({"ScheduleExpression": "at(2026-11-29T23:00:00)"}, "23:00:00"),
        ({"ScheduleExpression": "rate(1 hour)"}, "rate"),
        ({"ScheduleExpressionTimezone": "Europe/Paris"}, "Paris"),
        ({"FlexibleTimeWindow": {"Mode": "FLEXIBLE"}}, "flexible"),
        ({"Target": {"Arn": "arn:other", "RoleArn": "arn:x", "Input": "{}"}}, "arn:other"),
        (
            {"Target": {"Arn": TERMINATE, "RoleArn": "r", "Input": '{"InstanceIds": ["i-2"]}'}},
            "i-2",
        ),
        ({"Target": {"Arn": TERMINATE, "RoleArn": "arn:x", "Input": "nothing"}}, "not i-1"),
    ],
)
def test_every_other_schedule_is_named(changes: dict[str, Any], word: str) -> None:
    assert word in fault(schedule(**changes), "i-1", DEADLINE)
