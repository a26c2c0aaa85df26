"""What dead runs left: found by tag in any region, and removed when a person asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from harness.clock import Clock, parse_utc
from harness.cloud.clients import Aws
from harness.cloud.left import Known, Left
from harness.cloud.remove import Removed, remove
from harness.cloud.residue import every_fleet, residue
from harness.errors import Leaked, Refused, command
from harness.strict import Model


class FleetLeft(Model):
    """What of one fleet is there."""

    fleet: str
    study: str
    expires_utc: str
    """Its deadline by tag; '' when nothing names one."""
    left: tuple[Left, ...]

    @property
    def hosts(self) -> tuple[Left, ...]:
        """Its hosts that are not terminated."""
        return tuple(each for each in self.left if each.kind == "instance")

    def alive(self, clock: Clock) -> bool:
        """Whether it has hosts and its deadline is still to come: a run may be using them."""
        moment = moment_of(self.expires_utc)
        return bool(self.hosts) and (moment is None or clock.now() < moment)


class Swept(Model):
    """What a sweep removed and what it found left afterwards."""

    fleet: str
    removed: tuple[Removed, ...]
    left: tuple[Left, ...]


def find(aws: Aws, regions: Sequence[str], fleet: str = "") -> tuple[FleetLeft, ...]:
    """Every fleet (or the one named) of which anything is there in these regions."""
    if fleet:
        found = {fleet: residue(aws, fleet, regions=regions)}
    else:
        found = every_fleet(aws, regions=regions)
    return tuple(describe(name, left) for name, left in found.items() if left)


def describe(fleet: str, left: tuple[Left, ...]) -> FleetLeft:
    """A fleet's leftovers with what their tags say of it."""
    return FleetLeft(
        fleet=fleet,
        study=next((each.study for each in left if each.study), ""),
        expires_utc=next((each.expires_utc for each in left if each.expires_utc), ""),
        left=left,
    )


def sweep(
    aws: Aws, found: FleetLeft, regions: Sequence[str], *, abandon: str = "",
    known: Known | None = None,
) -> Swept:  # fmt: skip
    """Remove what is left of one fleet, then search again.

    Raises Refused while its hosts may be in use (unless `abandon` says why), Leaked when something
    is still there afterwards.
    """
    if found.alive(aws.clock) and not abandon:
        raise Refused(
            f"{len(found.hosts)} host(s) of this fleet are alive before its deadline "
            f"({found.expires_utc or 'not known'}); their evidence may not be preserved",
            where=found.fleet,
            next_command=command("sweep", "--fleet", found.fleet, "--remove", "--abandon", "WHY"),
        )
    removed = remove(aws, found.left)
    left = residue(aws, found.fleet, regions=regions, known=known)
    if left:
        raise Leaked(
            f"{len(left)} thing(s) are still there after the sweep: {left[0].sentence()}",
            where=found.fleet,
            next_command=command("sweep", "--fleet", found.fleet, "--remove"),
        )
    return Swept(fleet=found.fleet, removed=removed, left=left)


def moment_of(text: str) -> datetime | None:
    """A tag's time; None when it has none of ours."""
    try:
        return parse_utc(text)
    except ValueError:
        pass
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
