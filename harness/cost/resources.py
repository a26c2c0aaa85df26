"""resources.json of a fleet on AWS: made from observations, final once nothing is left."""

from __future__ import annotations

from collections.abc import Sequence

from harness.clock import parse_utc
from harness.cloud.left import Left
from harness.cost.lines import cost_lines, total_of
from harness.cost.observed import HostLife, Observed, VolumeLife
from harness.plan.kinds import CountOrZero, Money, Sha256, Text
from harness.prices import PriceFile
from harness.results import GoneThing, HostCost, Resources, VolumeCost
from harness.strict import Model

NOTE = (
    "This is a bound from on-demand prices before credits and taxes, not an invoice. Lives begin "
    "before the launch was asked for and end when AWS was seen to say 'terminated'."
)


class FleetFacts(Model):
    """What resources.json says besides money and lives."""

    fleet: Text
    studies: tuple[str, ...]
    """Run ids that the fleet carried."""
    attempts: CountOrZero
    regions: tuple[Text, ...]
    """Every region that an attempt touched."""
    allowance_usd: Money
    ceiling_usd: Money
    deadlines: tuple[str, ...]
    removed: tuple[GoneThing, ...] = ()
    """Groups, schedules and the rest, and when they went."""
    preservation_sha256: Sha256 | None = None


def resources_of(
    facts: FleetFacts, observed: Observed, prices: PriceFile, *, residue: Sequence[str] = (),
    final: bool = False,
) -> Resources:  # fmt: skip
    """The whole of resources.json. Pure. Raises Refused for an unknown price."""
    lines = cost_lines(observed, prices)
    return Resources(
        schema="harness/resources/1",
        fleet=facts.fleet,
        fleet_kind="stack",
        studies=facts.studies,
        attempts=facts.attempts,
        hosts=tuple(_host(host) for host in observed.hosts),
        volumes=tuple(_volume(volume) for volume in observed.volumes),
        removed=facts.removed,
        regions=facts.regions,
        observed_utc=observed.at_utc,
        lines=lines,
        allowance_usd=facts.allowance_usd,
        total_bound_usd=total_of(lines, facts.allowance_usd),
        ceiling_usd=facts.ceiling_usd,
        deadlines=facts.deadlines,
        residue=tuple(residue),
        preservation_sha256=facts.preservation_sha256,
        state="final" if final and not residue else "stack still present",
        note=NOTE,
    )


def finalised(
    found: Resources, left: Sequence[Left], utc: str, *, in_use: bool = False
) -> Resources:
    """The record after a search: final when nothing is left, else with what is there, by name.

    What stands because it is in use is not residue.
    """
    changed = {
        "state": "stack still present" if left else "final",
        "residue": () if in_use else tuple(each.sentence() for each in left),
        "removed": looked(found.removed or (), [(each.kind, each.id) for each in left], utc),
        "observed_utc": utc,
    }
    return found.model_copy(update=changed)


def looked(
    known: Sequence[GoneThing], shown: Sequence[tuple[str, str]], utc: str
) -> tuple[GoneThing, ...]:
    """What is known of the fleet's things after another search, which showed these kinds and ids.

    What is no longer shown went then, at the latest. Hosts and volumes have records of their own.
    """
    there = dict.fromkeys(each for each in shown if each[0] not in ("instance", "volume"))
    found = {(each.kind, each.id): each for each in known}
    for kind, name in there:
        found[kind, name] = GoneThing(kind=kind, id=name)
    return tuple(
        each if key in there or each.gone_utc else each.model_copy(update={"gone_utc": utc})
        for key, each in found.items()
    )


def _host(host: HostLife) -> HostCost:
    return HostCost(
        host=f"host-{host.slot}" if host.slot is not None else host.id,
        id=host.id,
        attempt=host.attempt or None,
        zone=host.zone or None,
        type=host.type,
        launched_utc=host.from_utc,
        ended_utc=host.until_utc,
        seconds=float(host.seconds(parse_utc(host.until_utc))) if host.until_utc else None,
    )


def _volume(volume: VolumeLife) -> VolumeCost:
    return VolumeCost(
        id=volume.id, gib=volume.gib, created_utc=volume.from_utc, gone_utc=volume.until_utc
    )
