"""Time and money that are left: the arithmetic, and when each kind of output says it."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

from harness.clock import utc_text
from harness.display.left import Left, Meter, left_line
from harness.display.progress import JsonProgress, make_progress

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
METER = Meter(
    deadline_utc=utc_text(NOON), ceiling_usd="10", worst_case_usd="8.5", hourly_usd="2.25"
)
LEFT = Left(5400.0, "4.87", "10")


def test_only_the_hours_to_come_are_not_spent() -> None:
    """8.50 in the worst case, 2 h at 2.25 to come: 4.00 at most is spent, 6.00 at least left."""
    assert METER.left(NOON - timedelta(hours=2)) == Left(7200.0, "6.00", "10")
    assert METER.left(NOON) == Left(0.0, "1.50", "10")
    assert METER.left(NOON + timedelta(hours=5)) == Left(0.0, "1.50", "10")


def test_cents_are_rounded_down_and_nothing_is_below_zero() -> None:
    third = Meter(utc_text(NOON), "1", "1", "1")
    assert third.left(NOON - timedelta(seconds=1200)).usd == "0.33"
    over = Meter(utc_text(NOON), "1", "3", "0")
    assert over.left(NOON).usd == "0.00"
    free = Meter(utc_text(NOON), "0", "0", "0")
    assert free.left(NOON - timedelta(hours=1)).usd == "0.00"


def test_the_line_fits_80_columns_and_says_a_passed_deadline() -> None:
    assert left_line(LEFT) == "deadline in about 1.5 h, at least $4.87 of the ceiling $10 left"
    assert left_line(Left(0.0, "1.00", "10")).startswith("the deadline has passed, ")
    assert len(left_line(Left(5399.0, "123456.78", "200000.00"))) <= 80


def test_plain_output_says_it_at_once_and_then_every_ten_minutes() -> None:
    now, out = [0.0], io.StringIO()
    progress = make_progress(out, monotonic=lambda: now[0])
    progress.stage("provision")
    progress.limits(lambda: LEFT)
    for _ in range(25):
        progress.item("train single", "update 1/9", done=1, of=9)
        now[0] += 60
    assert out.getvalue().count("deadline in about 1.5 h") == 3


def test_json_says_it_with_every_stage() -> None:
    out = io.StringIO()
    progress = JsonProgress(out)
    progress.stage("prepare")
    progress.limits(lambda: LEFT)
    progress.stage("push")
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [row["event"] for row in rows] == ["stage", "left", "stage", "left"]
    assert rows[1] == {"event": "left", "seconds": 5400.0, "usd": "4.87", "ceiling_usd": "10"}
