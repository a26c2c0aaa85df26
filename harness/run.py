"""Finding or making a run of a plan, and driving it."""

from __future__ import annotations

import fcntl
import os
import secrets
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from pydantic import Field

from harness import pipeline
from harness.attest.choice import NOT_ATTESTED, Attesting
from harness.attest.commitment import keep_to
from harness.clock import Clock
from harness.display.progress import Progress
from harness.errors import BadInput, HarnessError, Refused
from harness.fleet.choice import LOCAL, FleetChoice
from harness.fleet.sources import Admitted, Fleets, FleetTerms
from harness.given_up import give_weights_up
from harness.journal import Journal, read_entries
from harness.losing import record_losses
from harness.notices import Notices
from harness.plan import LoadedPlan
from harness.plan.check import check_plan, require_sound
from harness.plan.kinds import Sha256
from harness.prices import load_prices
from harness.receipts import CommitReceipt, ProvisionReceipt
from harness.store.choose import choose_store
from harness.strict import Model, build, load_file
from harness.study import Receipts, Study
from trainer import contract


class RunRecord(Model):
    """run.json of a run folder."""

    schema_: Literal["harness/run/1"] = Field(default="harness/run/1", alias="schema")
    run: str
    plan: str
    plan_hash: Sha256
    development: bool


@dataclass(frozen=True)
class Place:
    """A run's folder and what its record says."""

    folder: Path
    record: RunRecord

    @property
    def finished(self) -> bool:
        """Reported, or given up."""
        entries, _ = read_entries(self.folder / "journal.jsonl")
        ended = {entry.key for entry in entries if entry.kind == "receipt"}
        return "report" in ended or self.abandoned

    @property
    def abandoned(self) -> bool:
        """Preservation was given up; not where only weights are not kept."""
        entries, _ = read_entries(self.folder / "journal.jsonl")
        receipts = {entry.key: entry.data for entry in entries if entry.kind == "receipt"}
        given_up = receipts.get("release", {}).get("basis") == "abandoned"
        return given_up and "preserve" not in receipts


def cache_folder() -> Path:
    """HARNESS_CACHE, else the user's cache folder."""
    chosen = os.environ.get("HARNESS_CACHE")
    if chosen:
        return Path(chosen).resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "harness"


def places(runs: Path, plan: str) -> list[Place]:
    """All runs of a plan's name, oldest first."""
    found = []
    for path in sorted((runs / plan).glob("*/run.json")):
        if not path.parent.is_symlink():
            found.append(Place(path.parent, load_file(RunRecord, path)))
    return found


def find_place(loaded: LoadedPlan, runs: Path) -> Place | None:
    """The newest study run of exactly this plan, or null."""
    same = [
        place
        for place in places(runs, loaded.plan.name)
        if place.record.plan_hash == loaded.hash and not place.record.development
    ]
    return same[-1] if same else None


def make_place(loaded: LoadedPlan, runs: Path, clock: Clock, *, development: bool) -> Place:
    """A new run folder; `latest` points to it."""
    stamp = clock.now().strftime("%Y%m%d-%H%M%S")
    run = f"{'develop-' if development else ''}{stamp}-{secrets.token_hex(2)}"
    folder = runs / loaded.plan.name / run
    if "\ufffd" in os.fsencode(folder).decode("utf-8", "replace"):
        raise BadInput(
            "the name of this folder is not UTF-8, so records could not name it",
            where=str(folder),
            next_command=LOCAL.command(loaded.path, "--runs", "/tmp/runs"),
        )
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise BadInput(f"cannot be made ({error.strerror})", where=str(folder)) from None
    record = RunRecord(
        run=run, plan=loaded.plan.name, plan_hash=loaded.hash, development=development
    )
    contract.write_json(folder / "run.json", record.to_json())
    _point(folder.parent / "latest", run)
    return Place(folder, record)


def _point(link: Path, target: str) -> None:
    temporary = link.with_name(f".latest.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    os.replace(temporary, link)


def open_study(
    loaded: LoadedPlan, place: Place, runs: Path, progress: Progress, clock: Clock,
    *, choice: FleetChoice = LOCAL, abandon: str = "", notice: str = "",
) -> Study:  # fmt: skip
    """Everything that stages need; takes the run's lock. Raises Refused without its journal."""
    journal = place.folder / "journal.jsonl"
    if (place.folder / "receipts").exists() and not journal.exists():
        raise Refused(
            "this run has receipts and no journal, so nobody knows what was started",
            where=str(journal),
            next_command=f"put it back, or: {shlex.join(['mv', str(place.folder), '/tmp'])}",
        )
    kept = Journal(journal, clock)
    return Study(
        loaded=loaded,
        run=place.record.run,
        folder=place.folder,
        runs=runs,
        cache=cache_folder(),
        fleets=Fleets(choice),
        store=choose_store(loaded, runs, place.folder, choice.kind),
        journal=kept,
        clock=clock,
        progress=progress,
        notices=Notices(notice, place.record.run, progress.note, kept),
        hub_endpoint=os.environ.get("HF_ENDPOINT"),
        development=place.record.development,
        abandon=abandon,
    )


def run_plan(
    loaded: LoadedPlan, runs: Path, progress: Progress, clock: Clock,
    *, choice: FleetChoice = LOCAL, again: bool = False, notice: str = "",
    lost: Sequence[tuple[str, str]] = (), attesting: Attesting = NOT_ATTESTED,
    no_weights: str | None = None,
) -> tuple[Place, Receipts]:  # fmt: skip
    """Drive the newest run of this plan to its report, or start one, on the chosen hosts.

    A finished run is left as it is unless `again` asks for a replication. `lost` are hosts that
    the user says are gone for good, and why; `no_weights` says why no candidate's weights are
    kept. Raises HarnessError.
    """
    aws = loaded.plan.hosts.aws if choice.kind == "stack" else None
    if aws is None and choice.kind == "stack":
        _refuse_aws(loaded, runs)
    prices = load_prices(aws.region) if aws else None
    require_sound(check_plan(loaded, fleet_kind=choice.kind, prices=prices))
    place, study = choose_study(
        loaded, runs, progress, clock, choice=choice, again=again, notice=notice
    )
    try:
        study = _attested(study, attesting)
        if lost:
            _record_losses(study, lost)
        if no_weights is not None:
            give_weights_up(study.journal, no_weights)
        done = pipeline.advance(study)
        if done.incomplete is not None:
            study.notices.tell("failure", f"the study is incomplete: {done.incomplete.why}")
        return place, done
    except HarnessError as error:
        study.notices.tell("failure", str(error))
        raise
    finally:
        study.close()


def begin_plan(
    loaded: LoadedPlan, runs: Path, progress: Progress, clock: Clock,
    *, choice: FleetChoice, again: bool = False, attesting: Attesting = NOT_ATTESTED,
) -> None:  # fmt: skip
    """Drive the run through the stages that need no hosts: a plan that cannot begin launches none.

    Raises HarnessError; `run_plan` goes on from here.
    """
    _, study = choose_study(loaded, runs, progress, clock, choice=choice, again=again)
    try:
        pipeline.advance(_attested(study, attesting), pipeline.HOSTLESS)
    finally:
        study.close()


def _attested(study: Study, attesting: Attesting) -> Study:
    """The study with who signs and stamps. Raises when that is not as the run began."""
    committed = pipeline.recorded(study, "commit")
    return keep_to(study, attesting, committed if isinstance(committed, CommitReceipt) else None)


def _refuse_aws(loaded: LoadedPlan, runs: Path) -> NoReturn:
    """Names the hosts that the plan's run was begun on, if there is one."""
    place = find_place(loaded, runs)
    raise BadInput(
        "the plan declares no AWS hosts",
        where=f"{loaded.path}#/hosts/aws",
        next_command=(choice_of(place) if place else LOCAL).command(loaded.path),
    )


def _record_losses(study: Study, lost: Sequence[tuple[str, str]]) -> None:
    if study.journal.find("receipt", "terminate") is not None:
        raise BadInput("the hosts of this run are ended already", where="--lost")
    provisioned = pipeline.recorded(study, "provision")
    if not isinstance(provisioned, ProvisionReceipt):
        raise BadInput("this run has no hosts yet", where="--lost", next_command=study.again())
    record_losses(study, provisioned, lost)


def choose_study(
    loaded: LoadedPlan, runs: Path, progress: Progress, clock: Clock,
    *, choice: FleetChoice = LOCAL, again: bool = False, notice: str = "",
) -> tuple[Place, Study]:  # fmt: skip
    """The newest run of this plan, or a new one, with the run's lock taken.

    Two commands at once agree on one run: the second finds what the first has made, and raises
    Waiting because it is driven already.
    """
    with _one_at_a_time(runs / loaded.plan.name):
        place = find_place(loaded, runs)
        if place is not None and place.abandoned and not again:
            raise Refused(
                f"the run {place.record.run} of this plan was abandoned",
                where=str(place.folder),
                next_command=choice.command(loaded.path, "--again"),
            )
        if place is None or (again and place.finished):
            place = make_place(loaded, runs, clock, development=False)
        require_same_hosts(place, loaded, choice)
        return place, open_study(loaded, place, runs, progress, clock, choice=choice, notice=notice)


def admitted_fleet(place: Place) -> Admitted | None:
    """The fleet that a run was given; null before it was."""
    entries, _ = read_entries(place.folder / "journal.jsonl")
    for entry in entries:
        if entry.kind == "outcome" and entry.key == "provision/admit":
            return build(Admitted, entry.data, where=f"{place.folder}/journal.jsonl")
    return None


def choice_of(place: Place) -> FleetChoice:
    """The hosts that a run was begun on; this computer before it has any."""
    admitted = admitted_fleet(place)
    if admitted is None:
        return LOCAL
    if admitted.kind == "hosts-file":
        return FleetChoice("hosts-file", hosts_file=Path(admitted.hosts_file))
    return FleetChoice(admitted.kind)


def require_same_hosts(place: Place, loaded: LoadedPlan, choice: FleetChoice) -> None:
    """Raises Refused when a run that has its hosts is asked to go on with others."""
    admitted = admitted_fleet(place)
    if admitted is None or admitted.kind == choice.kind or place.finished:
        return
    raise Refused(
        f"the run {place.record.run} was begun on other hosts ({_KINDS[admitted.kind]})",
        where=str(place.folder),
        next_command=choice_of(place).command(loaded.path),
    )


_KINDS = {
    "local": "workers on this computer",
    "hosts-file": "the machines of a hosts file",
    "stack": "the stack's hosts",
}


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".choosing.lock", "a")  # noqa: SIM115 - closed below
    except OSError as error:
        raise BadInput(f"cannot be made ({error.strerror})", where=str(folder)) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def abandon_run(
    loaded: LoadedPlan, runs: Path, progress: Progress, clock: Clock, why: str,
    *, choice: FleetChoice = LOCAL,
) -> Place:  # fmt: skip
    """Give up preservation of the unfinished run and end its fleet."""
    place = find_place(loaded, runs)
    if place is None or place.finished:
        raise BadInput("there is no unfinished run of this plan", where=str(runs))
    require_same_hosts(place, loaded, choice)
    study = open_study(loaded, place, runs, progress, clock, choice=choice, abandon=why)
    try:
        pipeline.abandon(study)
    finally:
        study.close()
    return place


def still_running(place: Place) -> tuple[list[str], str]:
    """Jobs of the run that run now, by host, and the fleet's deadline (empty: none yet)."""
    admitted = admitted_fleet(place)
    if admitted is None:
        return [], ""
    hosts = sorted((place.folder / "fleet" / "hosts").glob("host-*"))
    terms = FleetTerms(place.folder, admitted.fleet, admitted.deadline_utc, len(hosts))
    fleets = Fleets(choice_of(place))
    try:
        found = [
            f"{job} on {host.name}"
            for host in fleets.open(terms).hosts()
            for job in host.jobs()
            if host.state(job).status == "running"
        ]
    finally:
        fleets.close()
    return found, admitted.deadline_utc
