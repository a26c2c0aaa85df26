"""Admission: the worst case of a launch, line by line, against the ceiling (invariant 1).

Every quantity is an upper bound from the plan alone; every price is dated. What has no line here
(key management, schedules, look-ups, taxes) is what the plan's allowance is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal

from harness import money
from harness.errors import Refused
from harness.plan.hosts import AwsHosts
from harness.plan.kinds import Money, Text
from harness.plan.plan import Plan
from harness.plan.sizes import stored_bytes, weight_bytes
from harness.prices import PriceFile
from harness.results import CostLine
from harness.strict import Model

FleetKind = Literal["local", "hosts-file", "stack"]

SCHEDULE_S = 60
"""The outer deadline fires within this long of its time (EventBridge Scheduler's granularity)."""
RELEASE_S = 3600
"""Volumes and addresses may outlast their hosts while these end."""
CONTINUED_DAYS = 30
"""What is priced when artifacts stay until removed by hand (retention_days 0)."""
PART_BYTES = 8 * 1024 * 1024
"""Smallest part in which an object travels; one request each."""
SMALL_OBJECTS = 10_000
"""Requests for records and listings, far above what a study makes."""
FREE_IOPS = 3000
FREE_MBPS = 125
UNTIL = "until the deadline"
"""In the line that time brings."""


class Earlier(Model):
    """An earlier launch of this plan, at its bound (resources.json)."""

    fleet: Text
    bound_usd: Money


class Bound(Model):
    """The worst case. A bound, not an invoice."""

    fleet_kind: FleetKind
    lines: tuple[CostLine, ...]
    allowance_usd: Money
    total_usd: Money
    ceiling_usd: Money
    notes: tuple[str, ...]
    """What the lines assume, in sentences."""

    @property
    def fits(self) -> bool:
        """Whether the total is within the ceiling."""
        return money.amount(self.total_usd) <= money.amount(self.ceiling_usd)

    @property
    def largest(self) -> CostLine | None:
        """The line with the highest bound."""
        return max(self.lines, key=lambda line: money.amount(line.bound_usd), default=None)


def worst_case(
    plan: Plan,
    prices: PriceFile | None,
    fleet_kind: FleetKind,
    earlier: Sequence[Earlier] = (),
) -> Bound:
    """The most that a launch of this plan can cost, US dollars.

    Local fleets are not billed and have no lines; machines of the user's own have storage lines
    when the store is S3. Raises Refused for an unknown price, size or region.
    """
    stores = plan.store is not None and plan.store.kind == "s3"
    if fleet_kind == "local" or (fleet_kind == "hosts-file" and not stores):
        return _free(plan, fleet_kind)
    if prices is None:
        raise Refused("there are no prices, so nothing is launched", where=plan.name)
    try:
        lines = [*_host_lines(plan, prices)] if fleet_kind == "stack" else []
        lines += _store_lines(plan, prices)
        lines += [_earlier(each) for each in earlier]
        lines = [line for line in lines if line.bound_usd != "0"]
        total = money.total([*(line.bound_usd for line in lines), plan.budget.allowance_usd])
    except ValueError:
        raise Refused(
            "the worst case is a billion dollars or more", where=f"{plan.name}#/budget"
        ) from None
    return Bound(
        fleet_kind=fleet_kind,
        lines=tuple(lines),
        allowance_usd=plan.budget.allowance_usd,
        total_usd=total,
        ceiling_usd=plan.budget.ceiling_usd,
        notes=_notes(plan, fleet_kind),
    )


def hourly_usd(bound: Bound, hosts: int) -> str | None:
    """What the hosts of a bound cost an hour, all together; null where none is billed by time."""
    for line in bound.lines:
        if UNTIL in line.what:
            return money.text(money.multiply(hosts, money.amount(line.unit_price_usd)))
    return None


def admit(
    plan: Plan,
    prices: PriceFile | None,
    fleet_kind: FleetKind,
    earlier: Sequence[Earlier] = (),
    *,
    next_command: str = "harness check plan.json",
) -> Bound:
    """The worst case, when it may be launched. Raises Refused when it is over the ceiling (with
    both figures and the largest line) or when the plan's launches are used up."""
    bound = worst_case(plan, prices, fleet_kind, earlier)
    if fleet_kind == "stack" and len(earlier) >= plan.budget.attempts:
        raise Refused(
            f"{len(earlier)} of the {plan.budget.attempts} launches that the plan allows are used",
            where=f"{plan.name}#/budget/attempts",
            next_command=next_command,
        )
    if not bound.fits:
        largest = bound.largest
        most = (
            f"; the largest line is '{largest.what}' with {largest.bound_usd} USD"
            if largest
            else ""
        )
        raise Refused(
            f"the worst case of {bound.total_usd} USD is over the ceiling of "
            f"{bound.ceiling_usd} USD{most}",
            where=f"{plan.name}#/budget/ceiling_usd",
            next_command=next_command,
        )
    return bound


def _free(plan: Plan, fleet_kind: FleetKind) -> Bound:
    return Bound(
        fleet_kind=fleet_kind,
        lines=(),
        allowance_usd="0",
        total_usd="0",
        ceiling_usd=plan.budget.ceiling_usd,
        notes=("Nothing is billed: these machines are the user's own.",),
    )


def _host_lines(plan: Plan, prices: PriceFile) -> Iterable[CostLine]:
    hosts = plan.hosts.aws
    if hosts is None:
        raise Refused("the plan declares no AWS hosts", where=f"{plan.name}#/hosts/aws")
    if prices.region != hosts.region:
        raise Refused(
            f"these prices are those of '{prices.region}', not of '{hosts.region}'",
            where=f"{plan.name}#/hosts/aws/region",
        )
    dearest = max(
        (prices.price(f"ec2/{each}") for each in hosts.types), key=lambda p: money.amount(p.usd)
    )
    life = plan.budget.deadline_s + SCHEDULE_S
    retries = (plan.budget.attempts - 1) * money.MINIMUM_BILLED_S
    yield prices.line(
        dearest.name,
        f"{hosts.count} host(s) of {dearest.name.removeprefix('ec2/')} {UNTIL}",
        money.multiply(hosts.count, money.billed_hours(life)),
    )
    yield prices.line(
        dearest.name,
        "the least billed time of further launches",
        money.multiply(hosts.count, money.hours(retries)),
    )
    yield from _attached_lines(plan, hosts, prices, life + RELEASE_S)
    sent = hosts.count * money.bytes_up(plan.budget.traffic_gb_per_host)
    for side in ("sent", "received"):
        what = f"hosts' traffic cap, {side}"
        yield prices.line("traffic/cross-zone", what, money.gigabytes(sent))


def _attached_lines(
    plan: Plan, hosts: AwsHosts, prices: PriceFile, held_s: int
) -> Iterable[CostLine]:
    volume = hosts.volume
    each = (
        ("gp3/storage", "root volumes", volume.gib),
        ("gp3/iops", f"IOPS over {FREE_IOPS:,}", volume.iops - FREE_IOPS),
        ("gp3/throughput", f"throughput over {FREE_MBPS} MB/s", volume.throughput_mbps - FREE_MBPS),
    )
    for name, what, units in each:
        months = money.unit_months(hosts.count * units, held_s)
        yield prices.line(name, what, months)
    held_h = money.multiply(hosts.count, money.hours(held_s))
    yield prices.line("ipv4", "public IPv4 addresses", held_h)


def _store_lines(plan: Plan, prices: PriceFile) -> Iterable[CostLine]:
    stored = stored_bytes(plan)
    weights = weight_bytes(plan)
    if stored is None or weights is None:
        raise Refused(
            "the number of parameters is unknown, so what the store will hold cannot be priced",
            where=f"{plan.name}#/model/parameters",
        )
    count = plan.hosts.aws.count if plan.hosts.aws else 1
    days = plan.budget.retention_days or CONTINUED_DAYS
    what = f"S3 storage for {days} days"
    if not plan.budget.retention_days:
        what += ", and then it continues"
    held = money.unit_months(money.gigabytes(stored), days * 86400)
    yield prices.line("s3/storage", what, held)
    writes = -(-stored // PART_BYTES) + SMALL_OBJECTS
    reads = -(-(2 * stored + count * weights) // PART_BYTES) + SMALL_OBJECTS * (count + 2)
    for name, text, requests in (
        ("s3/put", "S3 requests that write", writes),
        ("s3/get", "S3 requests that read", reads),
    ):
        yield prices.line(name, text, Decimal(requests).scaleb(-3))
    yield prices.line(
        "traffic/internet",
        "readback that leaves AWS: all that is stored, once",
        money.gigabytes(stored),
    )


def _earlier(attempt: Earlier) -> CostLine:
    return CostLine(
        what=f"earlier launch {attempt.fleet}",
        quantity="1",
        unit="launch",
        unit_price_usd=attempt.bound_usd,
        sku="its resources.json",
        price_date="as recorded there",
        bound_usd=attempt.bound_usd,
    )


def _notes(plan: Plan, fleet_kind: FleetKind) -> tuple[str, ...]:
    notes = [
        "This is a bound from on-demand prices before credits and taxes, not an invoice.",
        "Gigabytes are 10^9 bytes and months 720 hours, the dearer of the usual readings.",
        "Stored: 4 bytes a parameter; a full state adds two moments and an error a worker; 1 GB.",
    ]
    if not plan.budget.retention_days:
        notes.append(
            f"Artifacts stay until removed by hand: {CONTINUED_DAYS} days are priced, "
            "and the cost goes on after them."
        )
    if fleet_kind == "stack" and plan.hosts.aws is not None:
        notes.append(
            "All that hosts may send is priced as crossing zones, on both sides; in one zone "
            "over private addresses it is free. What leaves AWS is the readback line."
        )
    return tuple(notes)
