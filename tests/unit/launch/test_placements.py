"""The order in which a fleet is tried to be placed."""

from __future__ import annotations

import pytest

from harness.errors import Refused
from harness.launch.placements import left_out, placements
from harness.plan.hosts import AwsHosts, ReadAhead, Volume

A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"


def hosts(placement: str, count: int = 2, types: tuple[str, ...] = ("g6e.xlarge",)) -> AwsHosts:
    return AwsHosts.model_validate(
        {
            "region": "us-east-1",
            "count": count,
            "types": types,
            "zones": (A, B, C),
            "placement": placement,
            "network": "own",
            "image": "x",
            "volume": Volume(gib=100, iops=3000, throughput_mbps=125),
            "read_ahead": ReadAhead(training_kib=128, staging_kib=128),
        }
    )


def every(*types: str) -> dict[str, frozenset[str]]:
    return {each: frozenset({A, B, C}) for each in types}


def test_one_zone_tries_every_zone_with_the_first_type_before_the_second() -> None:
    found = placements(
        hosts("one-zone", types=("g6e.xlarge", "g6e.2xlarge")), every("g6e.xlarge", "g6e.2xlarge")
    )
    assert [(each.type, each.zones) for each in found] == [
        ("g6e.xlarge", (A, A)), ("g6e.xlarge", (B, B)), ("g6e.xlarge", (C, C)),
        ("g6e.2xlarge", (A, A)), ("g6e.2xlarge", (B, B)), ("g6e.2xlarge", (C, C)),
    ]  # fmt: skip


def test_spread_takes_the_zones_in_turn_and_begins_one_further_each_time() -> None:
    found = placements(hosts("spread"), every("g6e.xlarge"))
    assert [each.zones for each in found] == [(A, B), (B, C), (C, A)]


def test_an_order_of_the_same_zones_is_not_tried_twice() -> None:
    assert len(placements(hosts("spread", count=3), every("g6e.xlarge"))) == 1
    assert len(placements(hosts("spread", count=4), every("g6e.xlarge"))) == 3


def test_a_zone_that_does_not_offer_the_type_is_left_out_and_said() -> None:
    offered = {"g6e.xlarge": frozenset({A, C})}
    found = placements(hosts("spread"), offered)
    assert [each.zones for each in found] == [(A, C)]
    assert left_out(hosts("spread"), offered) == (f"g6e.xlarge is not offered in {B}",)


def test_no_zone_that_offers_any_type_is_a_refusal() -> None:
    with pytest.raises(Refused, match="is offered in us-east-1a"):
        placements(hosts("one-zone"), {})
