"""One phase's replicas: real server jobs, the fault of the last one, and what they leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness import jobs, outputs
from harness.errors import BadInput, Waiting
from harness.fleet.protocol import FleetSource
from harness.group_job import GroupJob, Terms
from harness.hosts.protocol import Host, Job, JobState, Unreachable
from harness.plan.kinds import CountOrZero
from harness.plan.serving import Phase
from harness.rank_bodies import ServeBody
from harness.receipts import RankReceipt, ReplicaRecord
from harness.serving.fates import ServedLine, read_lines
from harness.serving.order import Replica
from harness.store.protocol import Artifact
from harness.strict import Model
from harness.study import Study
from trainer import contract

POLL_S = 0.2
START_S = 900.0
"""Loading and verifying a model may take this long."""
FRONT_S = 60.0
FRONTED = frozenset({"late-answer", "silent", "wrong-identity", "truncated", "killed"})
"""Faults that a front in the replica's place makes."""


class Listens(Model):
    """What is used of serving.json and of front.json."""

    address: str
    port: CountOrZero


class NotReady(Exception):
    """A replica that never became ready: the phase failed, and this says why."""


@dataclass(frozen=True)
class Slot:
    """One replica of one phase."""

    group: GroupJob
    fault: str

    @property
    def host(self) -> Host:
        """Where it runs."""
        return self.group.hosts[0]

    @property
    def front(self) -> str:
        """Id of the job that stands in front of it, if its fault needs one."""
        return f"{self.group.job}.front"


def start(study: Study, fleet: FleetSource, slots: tuple[Slot, ...]) -> Terms:
    """Start every replica; returns the terms that the phase's other jobs share."""
    terms = [jobs.terms_of(study, fleet, slot.group) for slot in slots]
    for slot, each in zip(slots, terms, strict=True):
        jobs.start_rank(study, fleet, slot.group, 0, slot.host, each)
    return terms[0]


def wait_ready(
    study: Study, slots: tuple[Slot, ...], beside: Callable[[], None]
) -> tuple[Listens, ...]:
    """Where each replica listens, once all say that they are ready; `beside` is called meanwhile.

    Raises NotReady.
    """
    until = study.clock.monotonic() + START_S
    found: dict[int, Listens] = {}
    while len(found) < len(slots):
        beside()
        for place, slot in enumerate(slots):
            if place in found:
                continue
            data = _read(slot.host, f"{slot.group.out}/serving.json")
            if data:
                found[place] = _listens(slot, data)
                continue
            state = state_of(study, slot.host, slot.group.job)
            if state.status not in ("starting", "running"):
                raise NotReady(f"{slot.host.name}: {_words(slot, state)}")
        if study.clock.monotonic() > until:
            raise NotReady(f"not every replica was ready after {START_S:.0f} s")
        study.clock.sleep(POLL_S)
    return tuple(found[place] for place in range(len(slots)))


def _listens(slot: Slot, data: bytes) -> Listens:
    try:
        value = contract.parse(data)
        return Listens(address=str(value["address"]), port=int(value["port"]))
    except (contract.ContractError, KeyError, TypeError, ValueError):
        raise NotReady(f"{slot.host.name}: its serving.json cannot be used") from None


def _words(slot: Slot, state: JobState) -> str:
    log = _read(slot.host, f"jobs/{slot.group.job}/log").decode("utf-8", "replace")
    last = (log.strip().splitlines() or ["(empty log)"])[-1][:300]
    return f"it ended before it was ready ({state.status}, status {state.exit_code}) | log: {last}"


def _read(host: Host, path: str) -> bytes:
    try:
        return host.read(path)
    except OSError:
        return b""


def apply_fault(
    study: Study, slots: tuple[Slot, ...], places: tuple[Listens, ...], terms: Terms,
    timeout_s: float,
) -> tuple[Replica, ...]:  # fmt: skip
    """Stop the last replica or put its front before it; where the client finds each.

    Raises NotReady when a front does not come up.
    """
    found = []
    for slot, place in zip(slots, places, strict=True):
        down = slot.fault == "stopped"
        if down:
            slot.host.stop(slot.group.job, reason="stopped before the phase, as declared")
        elif slot.fault in FRONTED:
            place = _put_front(study, slot, place, terms, timeout_s)
        found.append(
            Replica(name=slot.host.name, address=place.address, port=place.port, down=down)
        )
    return tuple(found)


def _put_front(study: Study, slot: Slot, place: Listens, terms: Terms, timeout_s: float) -> Listens:
    host, work = slot.host, slot.host.work
    out = f"out/{slot.front}"
    arguments = {
        "fault": slot.fault,
        "serving": f"{work}/{slot.group.out}/serving.json",
        "job": f"{work}/jobs/{slot.group.job}",
        "address": place.address,
        "timeout-s": f"{timeout_s:g}",
        "out": f"{work}/{out}",
    }
    start_helper(host, slot.front, "front", arguments, terms)
    until = study.clock.monotonic() + FRONT_S
    while not (data := _read(host, f"{out}/front.json")):
        if state_of(study, host, slot.front).status not in ("starting", "running"):
            raise NotReady(f"{host.name}: the fault's front ended")
        if study.clock.monotonic() > until:
            raise NotReady(f"{host.name}: the fault's front did not come up")
        study.clock.sleep(POLL_S)
    return _listens(slot, data)


def state_of(study: Study, host: Host, job: str) -> JobState:
    """A job's state; a host that is out of reach is waited for, since its jobs go on.

    Raises Unreachable after the host's patience.
    """
    until = study.clock.monotonic() + host.patience_s
    while True:
        try:
            return host.state(job)
        except Unreachable:
            if study.clock.monotonic() > until:
                raise
            study.clock.sleep(POLL_S)


def start_helper(
    host: Host,
    job: str,
    module: str,
    arguments: dict[str, str],
    terms: Terms,
) -> None:
    """Start a program of `harness.onhost` as a detached job; a job of that id starts once."""
    program, environment = host.program(module)
    words = [word for name, value in arguments.items() for word in (f"--{name}", value)]
    host.start(
        Job(
            id=job,
            argv=(*program, *words),
            folder=f"jobs/{job}",
            environment={**environment, "HARNESS_FLEET": host.mark},
            ends_by_utc=terms.ends_by_utc,
        )
    )


def stop(slots: tuple[Slot, ...]) -> tuple[JobState, ...]:
    """End every replica and front; what has ended stays as it ended."""
    for slot in slots:
        if slot.fault in FRONTED:
            slot.host.stop(slot.front, reason="the phase is over")
    return tuple(slot.host.stop(slot.group.job, reason="the phase is over") for slot in slots)


def collect(
    study: Study, phase: Phase, place: int, slot: Slot, state: JobState
) -> tuple[ReplicaRecord, str]:
    """What a replica left, and what is wrong with it ('' if nothing)."""
    local = study.work / "serving" / phase.name
    local.mkdir(parents=True, exist_ok=True)
    ready = bool(_read(slot.host, f"{slot.group.out}/serving.json"))
    rank, wrong = _receipt(study, slot, state)
    served: Artifact | None = None
    try:
        file = local / f"served-{place}.jsonl"
        outputs.fetch(slot.host, f"{slot.group.out}/served-0.jsonl", file)
        read_lines(ServedLine, file)
        served = study.store.put(file, name=f"serving/{phase.name}/{file.name}")
    except BadInput as error:
        # A replica that was asked nothing has written nothing.
        if "missing or empty" not in error.what:
            wrong = wrong or f"{slot.host.name}: served-0.jsonl: {error.what}"
    record = ReplicaRecord(
        host=slot.host.name,
        ready=ready,
        fault=slot.fault,
        exit_code=state.exit_code,
        reason=state.reason,
        rank=rank,
        served=served,
        log=_log(study, slot),
    )
    return record, wrong


def _receipt(study: Study, slot: Slot, state: JobState) -> tuple[RankReceipt | None, str]:
    """A replica that ended by itself or was told to leaves a receipt; one that was killed none."""
    if slot.fault == "killed":
        return None, ""
    try:
        rank = outputs.receipts(study, slot.group, ServeBody)[0]
    except (BadInput, contract.ContractError) as error:
        return None, f"{slot.host.name} left no receipt ({error})"
    if rank.model_root != slot.group.recipe["parameter_root"]:
        return rank, f"{slot.host.name} served other weights than the selected ones"
    if state.exit_code != 0:
        return rank, f"{slot.host.name} ended with status {state.exit_code}"
    return rank, ""


def _log(study: Study, slot: Slot) -> Artifact | None:
    local = study.folder / "logs" / f"{slot.group.job}-{slot.host.name}.log"
    local.parent.mkdir(exist_ok=True)
    try:
        slot.host.get(f"jobs/{slot.group.job}/log", local)
    except (OSError, Waiting):
        return None
    return study.store.put(local, name=f"logs/{local.name}")
