"""What `bench.limited` says of the two ways into a small memory."""

from __future__ import annotations

from bench.limited import verdict
from bench.measure import Timed

GIB = 2**30


def row(name: str, seconds: float | None, gib: float = 0) -> Timed:
    return Timed(name, {}, seconds, None, None, None, int(gib * GIB), None)


WHOLE = row("whole device", 0.8, 62)


def test_the_faster_way_that_fits_is_named_and_the_other_one_priced() -> None:
    limited = [row("long, kept", None), row("short, kept", 1.4, 39), row("long, again", 1.0, 38)]
    assert verdict(WHOLE, limited).splitlines() == [
        "long, again: peak 38.0 GiB, at most 40: reached; +25.0% of an update's time on the whole "
        "device",
        "short, kept: peak 39.0 GiB; +75.0% of an update's time on the whole device",
    ]


def test_a_faster_way_over_the_target_is_not_chosen() -> None:
    said = verdict(WHOLE, [row("short, kept", 0.9, 42.1), row("long, again", 1.0, 38)])
    assert said.startswith("long, again: peak 38.0 GiB, at most 40: reached")


def test_what_only_fits_above_the_target_is_a_miss() -> None:
    assert "42.1 GiB, at most 40: MISSED" in verdict(WHOLE, [row("kept", 1.49, 42.1)])
    assert verdict(WHOLE, [row("kept", None)]) == "nothing fits"
