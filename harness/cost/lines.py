"""The bound: quantity x unit price, a line each, from observations and dated prices alone.

More of anything (an attempt, a second, a byte) never makes it smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from harness import money
from harness.admission import FREE_IOPS, FREE_MBPS, RELEASE_S, SCHEDULE_S
from harness.clock import parse_utc
from harness.cost.observed import HostLife, Observed, Stored, VolumeLife
from harness.prices import PriceFile
from harness.results import CostLine


def cost_lines(observed: Observed, prices: PriceFile) -> tuple[CostLine, ...]:
    """Every line of the bound, US dollars. Raises Refused for an unknown price.

    A host that is still there counts until its deadline has fired, a volume an hour longer, and
    neither less than until they were looked at.
    """
    at, deadline = parse_utc(observed.at_utc), parse_utc(observed.deadline_utc)
    last_host = max(at, deadline + timedelta(seconds=SCHEDULE_S))
    last_volume = max(at, last_host + timedelta(seconds=RELEASE_S))
    lines = [
        *_hosts(observed.hosts, last_host, prices),
        *_volumes(observed.volumes, last_volume, prices),
        *_traffic(observed, prices),
        *_stored(observed.stored, prices),
    ]
    return tuple(line for line in lines if line.bound_usd != "0")


def total_of(lines: Iterable[CostLine], allowance_usd: str) -> str:
    """The exact sum of the lines and the allowance."""
    return money.total([*(line.bound_usd for line in lines), allowance_usd])


def _hosts(hosts: Iterable[HostLife], last: datetime, prices: PriceFile) -> Iterator[CostLine]:
    for host in hosts:
        held = money.billed_hours(host.seconds(last))
        yield prices.line(f"ec2/{host.type}", f"{name_of(host)}, {host.type}", held)
        if host.public_address:
            yield prices.line("ipv4", f"{name_of(host)}, public IPv4 address", held)


def name_of(host: HostLife) -> str:
    """'host 0 of attempt 1.0 (i-...)'."""
    slot = "host not recorded" if host.slot is None else f"host {host.slot}"
    attempt = f" of attempt {host.attempt}" if host.attempt else ""
    return f"{slot}{attempt} ({host.id})"


def _volumes(
    volumes: Iterable[VolumeLife], last: datetime, prices: PriceFile
) -> Iterator[CostLine]:
    for volume in volumes:
        seconds = max(volume.seconds(last), Decimal(money.MINIMUM_BILLED_S))
        for name, what, units in (
            ("gp3/storage", f"volume {volume.id}, {volume.gib} GiB", volume.gib),
            ("gp3/iops", f"volume {volume.id}, IOPS over {FREE_IOPS:,}", volume.iops - FREE_IOPS),
            (
                "gp3/throughput",
                f"volume {volume.id}, throughput over {FREE_MBPS} MB/s",
                volume.throughput_mbps - FREE_MBPS,
            ),
        ):
            if units > 0:
                yield prices.line(name, what, money.unit_months(units, seconds))


def _traffic(observed: Observed, prices: PriceFile) -> Iterator[CostLine]:
    """Whole-host counters as if all of it crossed zones, which is charged on both sides."""
    cap = observed.traffic_cap_bytes
    for side in ("sent", "received"):
        counted = [host.sent_bytes if side == "sent" else host.received_bytes
                   for host in observed.hosts]  # fmt: skip
        unknown = sum(1 for each in counted if each is None)
        total = sum(cap if each is None else each for each in counted)
        note = f" ({unknown} host(s) at the plan's cap)" if unknown else ""
        if total:
            what = f"hosts' traffic, {side}{note}"
            yield prices.line("traffic/cross-zone", what, money.gigabytes(total))


def _stored(stored: Stored, prices: PriceFile) -> Iterator[CostLine]:
    if stored.bytes and stored.days:
        held = money.unit_months(money.gigabytes(stored.bytes), stored.days * 86400)
        yield prices.line("s3/storage", f"S3 storage for {stored.days} days", held)
    for name, what, count in (
        ("s3/put", "S3 requests that write", stored.puts),
        ("s3/get", "S3 requests that read", stored.gets),
    ):
        if count:
            yield prices.line(name, what, Decimal(count).scaleb(-3))
    if stored.read_outside_bytes:
        amount = money.gigabytes(stored.read_outside_bytes)
        yield prices.line("traffic/internet", "readback that left AWS", amount)
