"""What two slower hosts on a slower link would do, from numbers that can be checked by hand."""

from __future__ import annotations

import pytest

from bench.projection import H200, L40S, Exchanged, speed_up, total_bytes, transfer_s

DENSE = Exchanged("dense", 2.0, 0.0, 6_845_505_536)
"""The 1.7B shape in FP32: every parameter, 4 bytes."""
SMALL = Exchanged("factors", 2.0, 0.0, 78_000_000)


def test_bytes_take_their_time_on_the_link() -> None:
    assert transfer_s(1.25e9, 10) == pytest.approx(1.0)
    assert transfer_s(1.25e9, 10, efficiency=0.5) == pytest.approx(2.0)


@pytest.mark.parametrize(("gbit", "found"), [(5, 0.65), (10, 1.00), (20, 1.36)])
def test_dense_updates_of_the_reference_recipe_match_what_is_known_of_them(
    gbit: float, found: float
) -> None:
    """A pair of two at 10.2 s an update alone; the figures are an earlier study's, on paper."""
    kind = Exchanged("dense", 10.2 / 2, 0.0, DENSE.sent_bytes)
    gain = speed_up(10.2, [(1, kind)], gbit, measured=L40S, other=L40S)
    assert gain == pytest.approx(found, rel=0.05)


def test_an_arm_is_its_phases() -> None:
    phases = [(8, DENSE), (120, SMALL)]
    gain = speed_up(4.0, phases, 10, measured=H200, other=H200)
    seconds = 8 * (2 + 6_845_505_536 * 8 / 1e10) + 120 * (2 + 78e6 * 8 / 1e10)
    assert gain == pytest.approx(128 * 4 / seconds)
    assert total_bytes(phases) == 2 * (8 * 6_845_505_536 + 120 * 78_000_000)


def test_a_slower_device_hides_more_of_the_same_link() -> None:
    same = speed_up(4.0, [(1, DENSE)], 10, measured=H200, other=H200)
    assert speed_up(4.0, [(1, DENSE)], 10, measured=H200, other=L40S) > same
