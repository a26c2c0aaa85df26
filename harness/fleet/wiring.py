"""What the Pulumi program may ask and tell: the same for plain `pulumi up` and `harness up`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.clock import Clock, parse_utc
from harness.cloud.clients import Aws
from harness.errors import Refused, command
from harness.fleet.admitted import AdmittedFleet
from harness.journal import Journal
from harness.launch import ending, mirror, preserved, record
from harness.launch.fleets import FleetPlace, fleet_named

if TYPE_CHECKING:
    from infra.wiring import Wiring

LEAST_SHARE = 0.5
"""Of the time from admission to deadline that must be left when hosts are launched."""


class Wired:
    """The operator's side of one fleet, as the program calls it."""

    def __init__(
        self, place: FleetPlace, aws: Aws, clock: Clock, journal: Journal | None = None
    ) -> None:
        self._place = place
        self._admitted = place.admitted
        self._aws = aws
        self._clock = clock
        self._held = journal

    def require_admission(self) -> None:
        """Raises Refused when nothing may be launched; a fleet that stands is no launch."""
        require_launchable(self._place, self._clock)
        if not self._stands():
            require_time(self._place, self._clock)

    def before_host(self, slot: int) -> None:
        """Intent on disk. Raises Refused when the slot has a host, or had one in plain `up`."""
        alive = ending.living(ending.seen(self._aws, self._admitted))
        there = [host.id for host in alive if host.slot == str(slot)]
        if there:
            raise Refused(
                f"slot {slot} has the host {there[0]} already", where=self._admitted.fleet
            )
        with self._journal() as journal:
            if self._held is None and record.launch_intents(journal.entries, slot):
                raise Refused(
                    f"slot {slot} had a host before, and plain `pulumi up` launches each once",
                    where=self._admitted.fleet,
                    next_command=command("down", self._admitted.plan_path),
                )
            key = record.next_key(record.HOST, self._admitted, journal.entries, self._tail(slot))
            journal.append("intent", key, {"slot": slot, "placement": self._admitted.chosen})

    def after_host(self, slot: int, instance_id: str) -> None:
        """Outcome on disk."""
        with self._journal() as journal:
            key = record.launch_intents(journal.entries, slot)[-1].key
            journal.append(
                "outcome", key, record.Launched(slot=slot, instance_id=instance_id).to_json()
            )

    def on_failure(self, why: str) -> None:
        """End what this placement launched and wait until AWS calls it terminated."""
        with self._journal() as journal:
            journal.note("placement-failed", {"why": why[:2000]})
            ending.end_all(self._aws, self._admitted, journal)

    def preserved(self) -> bool:
        """Whether the gate is open, by the live store."""
        return preserved.released(self._place) is not None

    def _stands(self) -> bool:
        """Whether every slot has a host that lives."""
        alive = ending.living(ending.seen(self._aws, self._admitted))
        return {host.slot for host in alive} >= {str(s) for s in range(self._admitted.count)}

    def _tail(self, slot: int) -> str:
        return f"{self._admitted.chosen}/{slot}"

    @contextmanager
    def _journal(self) -> Iterator[Journal]:
        if self._held is not None:
            yield self._held
            return
        with mirror.driving(self._place, self._clock, self._aws, print) as journal:
            yield journal


def require_launchable(place: FleetPlace, clock: Clock) -> None:
    """Raises Refused when the fleet is ended, past its deadline or over its ceiling."""
    admitted = place.admitted
    again = command("admit", admitted.plan_path)
    if place.final:
        raise Refused("this fleet is ended", where=admitted.fleet, next_command=again)
    if place.expired(clock):
        raise Refused(
            f"the deadline {admitted.deadline_utc} of this fleet has passed",
            where=admitted.fleet,
            next_command=command("down", admitted.plan_path),
        )
    if not admitted.bound.fits:
        raise Refused(
            f"the worst case of {admitted.bound.total_usd} USD is over the ceiling",
            where=admitted.fleet,
            next_command=again,
        )


def require_time(place: FleetPlace, clock: Clock) -> None:
    """Raises Refused when less than half of the admitted time is left."""
    admitted = place.admitted
    begun = parse_utc(place.entries()[0].utc)
    ends = parse_utc(admitted.deadline_utc)
    left, whole = (ends - clock.now()).total_seconds(), (ends - begun).total_seconds()
    if left < LEAST_SHARE * whole:
        raise Refused(
            f"{left / 60:.0f} of {whole / 60:.0f} minutes are left before the deadline, too few to "
            "begin, and a deadline never moves",
            where=admitted.fleet,
            next_command=f"{command('down', admitted.plan_path)}, then harness admit again",
        )


def wiring_of(wired: Wired, admitted: AdmittedFleet) -> Wiring:
    """The program's own form of it."""
    from infra.wiring import Wiring

    return Wiring(
        admitted=admitted,
        require_admission=wired.require_admission,
        before_host=wired.before_host,
        after_host=wired.after_host,
        on_failure=wired.on_failure,
        preserved=wired.preserved,
    )


def plain_wiring(admitted: AdmittedFleet) -> Wiring:
    """For plain `pulumi` commands: the fleet's folder is found by the stack's configuration.

    Raises BadInput when the fleet was not admitted on this computer, Refused when the
    configuration is not what was admitted.
    """
    place = fleet_named(_runs(), admitted.fleet)
    if place.admitted != admitted:
        raise Refused(
            "the stack's configuration is not what was admitted",
            where=admitted.fleet,
            next_command=command("access", admitted.plan_path) + " (writes it again)",
        )
    clock = Clock()
    return wiring_of(Wired(place, Aws(admitted.region, clock=clock), clock), admitted)


def _runs() -> Path:
    """The runs folder that `harness admit` wrote into the configuration, else runs/."""
    import pulumi

    given = pulumi.Config("harness").get("runs")
    return Path(given) if given else Path(pulumi.get_root_directory()) / "runs"
