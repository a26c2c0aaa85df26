"""What every stage is given: the plan, where things are, and the receipts so far."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness import receipts as r
from harness.admission import FleetKind, hourly_usd
from harness.attest.choice import NOT_ATTESTED, Attesting
from harness.clock import Clock
from harness.display.left import Meter
from harness.display.progress import Progress
from harness.errors import Refused
from harness.fleet.choice import FleetChoice
from harness.fleet.protocol import FleetSource
from harness.fleet.sources import Fleets, FleetTerms
from harness.journal import Journal
from harness.lost import lost_hosts
from harness.notices import Notices
from harness.plan import LoadedPlan, Plan
from harness.store.protocol import Store

R = TypeVar("R", bound=r.Receipt)


@dataclass(frozen=True)
class Study:
    """One run of one plan."""

    loaded: LoadedPlan
    run: str
    folder: Path
    """runs/<plan name>/<run id>"""
    runs: Path
    cache: Path
    """Environments and converted models that runs share."""
    fleets: Fleets
    """Opens the fleet that the user chose."""
    store: Store
    journal: Journal
    clock: Clock
    progress: Progress
    notices: Notices
    """Tells a person who is not looking."""
    hub_endpoint: str | None = None
    development: bool = False
    """A `harness develop` run: nothing is committed and only development cases are scored."""
    abandon: str = ""
    """Why preservation is given up; empty: it is not."""
    attesting: Attesting = NOT_ATTESTED
    """Who signs and time-stamps the commitments."""

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.loaded.plan

    def close(self) -> None:
        """Let another process drive the run; what runs on hosts goes on."""
        self.notices.close()
        self.fleets.close()
        self.journal.close()

    @property
    def choice(self) -> FleetChoice:
        """Which hosts the user chose."""
        return self.fleets.choice

    @property
    def fleet_kind(self) -> FleetKind:
        """'local', 'hosts-file' or 'stack'."""
        return self.choice.kind

    def again(self, *more: str) -> str:
        """The command that goes on with this run, with the hosts that the user chose."""
        return self.choice.command(self.loaded.path, *more)

    @property
    def prepared_path(self) -> Path:
        """prepared.json stands beside the plan; a development run keeps its own."""
        return (self.folder if self.development else self.loaded.folder) / "prepared.json"

    @property
    def work(self) -> Path:
        """Files of the operator's side that are made on the way."""
        path = self.folder / "work"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def meter(self, provision: r.ProvisionReceipt) -> Meter:
        """What the fleet may cost, and until when."""
        hourly = None
        if provision.fleet_kind == "stack":
            from harness.launch.fleets import fleet_named

            admitted = fleet_named(self.runs, provision.fleet).admitted
            hourly = hourly_usd(admitted.bound, admitted.count)
        return Meter(
            deadline_utc=self.fleet(provision).deadline_utc,
            ceiling_usd=provision.ceiling_usd,
            worst_case_usd=provision.worst_case_usd,
            hourly_usd=hourly or "0",
        )

    def lost(self) -> dict[str, str]:
        """Hosts that are recorded as gone for good, with what is said of each."""
        return {name: each.sentence() for name, each in lost_hosts(self.journal.entries).items()}

    def fleet(self, provision: r.ProvisionReceipt) -> FleetSource:
        """The fleet that the provision stage recorded."""
        deadline = next(d.at_utc for d in provision.deadlines if d.kind == "inner")
        assert deadline is not None  # the inner deadline always applies
        return self.fleets.open(
            FleetTerms(
                run_folder=self.folder,
                count=len(provision.hosts),
                fleet_id=provision.fleet,
                deadline_utc=deadline,
                lost=self.lost(),
            )
        )


@dataclass(frozen=True)
class Receipts:
    """Receipts of earlier stages, by type."""

    by_stage: dict[r.StageName, r.Receipt]

    def find(self, kind: type[R]) -> R | None:
        """The receipt of that type; null when its stage has not run."""
        for receipt in self.by_stage.values():
            if isinstance(receipt, kind):
                return receipt
        return None

    def of(self, kind: type[R]) -> R:
        """The receipt of that type. Raises Refused when its stage has not run."""
        found = self.find(kind)
        if found is None:
            raise Refused(f"a stage needs the {kind.__name__}, and it is not there")
        return found

    @property
    def arms(self) -> tuple[r.ArmRecord, ...]:
        """Arms that have their candidate; none where training never began."""
        trained = self.find(r.TrainReceipt)
        return trained.arms if trained else ()

    @property
    def unfinished(self) -> tuple[r.Unfinished, ...]:
        """Arms and evaluations that had begun when the study had to end."""
        stages = (self.find(r.TrainReceipt), self.find(r.EvaluateReceipt))
        return tuple(one for stage in stages if stage for one in stage.unfinished or ())

    @property
    def incomplete(self) -> r.Incomplete | None:
        """Why the study had to end early; null while it has not."""
        return next((x.incomplete for x in self.by_stage.values() if x.incomplete), None)
