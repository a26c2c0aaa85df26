"""Numbers as text."""

from __future__ import annotations

import pytest

from harness.display import words


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (words.count(1711376384), "1,711,376,384"),
        (words.percent(748 / 1024), "73.05 %"),
        (words.points(-0.009765625), "-0.98 points"),
        (words.points(-0.0000001), "+0.00 points"),
        (words.nats(0.022167), "+0.022167 nats"),
        (words.seconds(1304.9), "1,304.90 s"),
        (words.seconds(0.12345), "0.123 s"),
        (words.rate(101.4), "101"),
        (words.rate(2.901), "2.9"),
        (words.decimal_bytes(151_628_000_000), "151.628 GB"),
        (words.decimal_bytes(999), "999 B"),
        (words.decimal_bytes(0), "0 B"),
        (words.binary_bytes(42_487_964_672), "39.57 GiB"),
        (words.binary_bytes(1024**6), "1,024.00 PiB"),
        (words.money("77.1"), "$77.1"),
        (words.money_up("0.8301"), "$0.84"),
        (words.money_up("5"), "$5.00"),
        (words.one_sided(2.576), "99.5 % one-sided"),
        (words.about(119), "about 2 min"),
        (words.about(0.2), "about 1 s"),
        (words.about(7200), "about 2.0 h"),
        (words.about(float("inf")), "time unknown"),
        (words.utc("2026-11-29T20:15:01.123456Z"), "2026-11-29 20:15:01 UTC"),
        (words.utc("not a time"), "not a time"),
        (words.statistic_value("accuracy-difference", -0.03), "-3.00 points"),
        (words.statistic_value("retention-difference", 0.02), "+0.020000 nats"),
        (words.statistic_value("speed-ratio", 1.45), "1.450x"),
        (words.statistic_value("mcnemar", 1.12e-44), "1.12e-44"),
        (words.statistic_value("accuracy", 0.5), "50.00 %"),
    ],
)
def test_a_figure_is_written_in_its_unit(made: str, text: str) -> None:
    assert made == text
    assert made.isascii()
