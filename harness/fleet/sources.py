"""The one place that knows which `FleetSource` stands behind a choice of hosts.

What needs Fabric or the cloud's libraries is imported here, when it is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.admission import FleetKind
from harness.fleet.choice import FleetChoice
from harness.fleet.local import LocalFleet
from harness.fleet.protocol import FleetSource
from harness.strict import Model


class Admitted(Model):
    """Outcome of provision's first effect: the fleet's name, its deadline and where hosts are."""

    fleet: str
    deadline_utc: str
    kind: FleetKind = "local"
    hosts_file: str = ""
    """With 'hosts-file': the file as the user gave it; its copy is hosts.json of the run."""


@dataclass(frozen=True)
class FleetTerms:
    """What a fleet is opened with; all of it stands in the journal."""

    run_folder: Path
    fleet_id: str
    deadline_utc: str
    count: int
    patience_s: float | None = None
    """How long a host may be out of reach; absent: as its hosts file says."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Hosts that are gone for good and are left alone, with what is said of each."""


@dataclass
class Fleets:
    """Opens each fleet once, so that its connections are shared by all stages."""

    choice: FleetChoice
    _opened: dict[str, FleetSource] = field(default_factory=dict)

    def open(self, terms: FleetTerms) -> FleetSource:
        """The fleet of these terms. Raises HarnessError of its kind."""
        if terms.fleet_id not in self._opened:
            self._opened[terms.fleet_id] = _open(self.choice, terms)
        return self._opened[terms.fleet_id]

    def close(self) -> None:
        """Close connections; what runs on hosts goes on."""
        for fleet in self._opened.values():
            fleet.close()
        self._opened.clear()


def _open(choice: FleetChoice, terms: FleetTerms) -> FleetSource:
    if choice.kind == "local":
        return LocalFleet(terms.run_folder, terms.count, terms.fleet_id, terms.deadline_utc)
    if choice.kind == "hosts-file":
        from harness.fleet.hosts_file import HostsFileFleet

        return HostsFileFleet(
            terms.run_folder,
            terms.fleet_id,
            terms.deadline_utc,
            patience_s=terms.patience_s,
            lost=terms.lost,
        )
    from harness.fleet.stack import StackFleet

    return StackFleet(
        terms.run_folder, terms.fleet_id, keep=choice.keep_hosts, lost=tuple(terms.lost)
    )
