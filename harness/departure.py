"""When a run stops measuring: only preserving what exists still fits before the deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from harness.clock import Clock, parse_utc, utc_text
from harness.errors import Waiting
from harness.fleet.protocol import FleetSource
from harness.hosts.protocol import Host, HostFacts
from harness.journal import Entry
from harness.leaving import PACES, Pace, point_of_no_return, slowest
from harness.receipts import Attempt, Incomplete, PrepareReceipt, ProvisionReceipt
from harness.staging import MOVED
from harness.study import Receipts, Study

T = TypeVar("T")


class TimeToLeave(Waiting):
    """Nothing more is measured. A study's stage keeps what exists and says so in its receipt."""

    def __init__(
        self, incomplete: Incomplete, attempts: Sequence[Attempt] = (), outs: Sequence[str] = ()
    ) -> None:
        super().__init__(incomplete.why)
        self.incomplete = incomplete
        self.attempts = tuple(attempts)
        """Of the work that had begun, the stopped one last; empty: it had not."""
        self.outs = tuple(outs)
        """Their output folders, in each host's work folder."""


@dataclass(frozen=True)
class Departure:
    """The point of no return of a fleet, as far as is known now."""

    clock: Clock
    at: datetime
    deadline_utc: str
    lost: Mapping[str, str] = field(default_factory=dict)
    """Hosts that are gone for good, with what is said of each."""

    def due(self, hosts: Sequence[Host | HostFacts] = ()) -> Incomplete | None:
        """Why nothing more is to be measured on these hosts; null while it can be."""
        for host in hosts:
            if host.name in self.lost:
                return Incomplete(because="lost-host", why=self.lost[host.name])
        if self.clock.now() < self.at:
            return None
        return Incomplete(
            because="deadline",
            why=f"the point of no return, {utc_text(self.at)}, passed: from then on only "
            f"preserving what exists fitted before the deadline at {self.deadline_utc}",
        )


def departure_of(study: Study, done: Receipts, fleet: FleetSource) -> Departure:
    """Counted from what one more candidate would upload, from all that is read back in the end
    (inputs and every arm's candidate), and from the slowest transfer so far."""
    prepared = done.of(PrepareReceipt)
    candidate = sum(each.bytes for each in prepared.seed_files)
    inputs = sum(each.bytes for each in prepared.prepared_files)
    pace = PACES.get(fleet.kind, Pace())
    at = point_of_no_return(
        parse_utc(fleet.deadline_utc),
        candidate,
        inputs + candidate * len(study.plan.arms),
        slowest(rates_of(study.journal.entries), pace.bytes_per_s),
        pace.fixed_s,
    )
    return Departure(study.clock, at, fleet.deadline_utc, study.lost())


def while_there_is_time(study: Study, done: Receipts, work: Callable[[], T]) -> T:
    """What is done on hosts before any arm begins. Raises TimeToLeave in its place.

    Hosts end at their deadline, so a failure to reach or use them is no failure of theirs once only
    preserving fits. A development run has nothing to preserve: its error stays what it was.
    """
    provisioned = done.of(ProvisionReceipt)
    departure = departure_of(study, done, study.fleet(provisioned))
    needed = provisioned.hosts[: study.plan.workers]
    if due := departure.due(needed):
        raise TimeToLeave(due)
    try:
        return work()
    except TimeToLeave:
        raise
    except Waiting:
        if due := departure.due(needed):
            raise TimeToLeave(due) from None
        raise


def rates_of(entries: Sequence[Entry]) -> list[tuple[int, float]]:
    """(bytes, seconds) of every transfer between a host and the store so far."""
    return [
        (int(entry.data["bytes"]), float(entry.data["seconds"]))
        for entry in entries
        if entry.kind == "note" and entry.key == MOVED
    ]
