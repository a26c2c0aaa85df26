"""What earlier launches of a plan count for in a new admission."""

from __future__ import annotations

from decimal import Decimal

from harness import money
from harness.admission import Bound, Earlier
from harness.launch.fleets import FleetPlace
from harness.results import CostLine


def own_usd(total_usd: str, lines: tuple[CostLine, ...]) -> Decimal:
    """A launch's bound without the lines of launches before it, which count by themselves."""
    before = [money.amount(line.bound_usd) for line in lines if line.unit == "launch"]
    return money.amount(total_usd) - sum(before, Decimal(0))


def earlier_of(places: list[FleetPlace], plan_hash: str) -> tuple[Earlier, ...]:
    """The earlier launches of this plan: at the bound of resources.json once it is final, else at
    their whole admitted bound."""
    return tuple(
        Earlier(fleet=place.admitted.fleet, bound_usd=money.text(_counted(place)))
        for place in places
        if place.admitted.plan_hash == plan_hash
    )


def _counted(place: FleetPlace) -> Decimal:
    found = place.resources()
    if found is not None and found.state == "final":
        return own_usd(found.total_bound_usd, found.lines)
    bound: Bound = place.admitted.bound
    return own_usd(bound.total_usd, bound.lines)
