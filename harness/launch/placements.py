"""The ways to place a fleet, in the plan's order. Pure.

Types are the outer loop and zones the inner one: every zone is tried with the first type before
the second type is tried at all. A zone that does not offer a type is left out for that type.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from harness.errors import Refused
from harness.fleet.admitted import Placement
from harness.plan.hosts import AwsHosts


def placements(hosts: AwsHosts, offered: Mapping[str, Set[str]]) -> tuple[Placement, ...]:
    """All placements that may be tried; `offered` are the zones of each type.

    one-zone: the whole fleet in each zone. spread: the zones in turn by slot, beginning at each
    zone; an order that uses the same zones equally often as an earlier one is not tried again.
    Raises Refused when no type is offered in any of the zones.
    """
    found: list[Placement] = []
    for each in hosts.types:
        zones = [zone for zone in hosts.zones if zone in offered.get(each, frozenset())]
        seen: set[tuple[str, ...]] = set()
        for first in range(len(zones)):
            placed = _placed(hosts, zones, first)
            if tuple(sorted(placed)) not in seen:
                seen.add(tuple(sorted(placed)))
                found.append(Placement(type=each, zones=placed))
    if not found:
        raise Refused(
            f"none of {', '.join(hosts.types)} is offered in {', '.join(hosts.zones)}",
            where=hosts.region,
            next_command="change /hosts/aws/types or /hosts/aws/zones (a new plan)",
        )
    return tuple(found)


def left_out(hosts: AwsHosts, offered: Mapping[str, Set[str]]) -> tuple[str, ...]:
    """A sentence for each type and zone of the plan that is not offered."""
    return tuple(
        f"{each} is not offered in {zone}"
        for each in hosts.types
        for zone in hosts.zones
        if zone not in offered.get(each, frozenset())
    )


def _placed(hosts: AwsHosts, zones: list[str], first: int) -> tuple[str, ...]:
    step = 0 if hosts.placement == "one-zone" else 1
    return tuple(zones[(first + step * slot) % len(zones)] for slot in range(hosts.count))
