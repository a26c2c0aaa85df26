"""Observed fleets for tests of money."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from harness.clock import utc_text
from harness.cost.observed import HostLife, Observed, Stored, VolumeLife
from harness.cost.resources import FleetFacts, resources_of
from harness.prices import PriceFile, load_prices
from harness.results import Resources

PRICES = load_prices("us-east-1")
START = datetime(2026, 11, 30, 1, 2, 3, 456789, tzinfo=UTC)


def at(seconds: float) -> str:
    """A moment so many seconds after the start."""
    return utc_text(START + timedelta(seconds=seconds))


def host(slot: int = 0, begin: float = 0, end: float | None = 3600, **more: Any) -> HostLife:
    """A g6e.xlarge that lived so long."""
    fields: dict[str, Any] = {
        "id": f"i-{slot:017x}", "slot": slot, "attempt": "1.0", "type": "g6e.xlarge",
        "from_utc": at(begin), "until_utc": None if end is None else at(end),
        "sent_bytes": 0, "received_bytes": 0, **more,
    }  # fmt: skip
    return HostLife(**fields)


def volume(begin: float = 0, end: float | None = 3600, **more: Any) -> VolumeLife:
    """A plain gp3 volume of 100 GiB."""
    fields: dict[str, Any] = {
        "id": "vol-1", "gib": 100, "iops": 3000, "throughput_mbps": 125, "from_utc": at(begin),
        "until_utc": None if end is None else at(end), **more,
    }  # fmt: skip
    return VolumeLife(**fields)


def observed(
    hosts: tuple[HostLife, ...] = (), volumes: tuple[VolumeLife, ...] = (), **more: Any
) -> Observed:
    """A fleet with a deadline after two hours, looked at after one."""
    fields: dict[str, Any] = {
        "region": "us-east-1", "at_utc": at(3600), "deadline_utc": at(7200), "hosts": hosts,
        "volumes": volumes, "traffic_cap_bytes": 10**12, "stored": Stored(), **more,
    }  # fmt: skip
    return Observed(**fields)


def resources(seen: Observed, prices: PriceFile = PRICES, **more: Any) -> Resources:
    """Its resources.json."""
    facts = FleetFacts(
        fleet="f-1", studies=("20261130-a", "20261130-b"), attempts=2, regions=("us-east-1",),
        allowance_usd="10", ceiling_usd="150", deadlines=("outer: 2 schedules read back",),
    )  # fmt: skip
    return resources_of(facts, seen, prices, **more)
