"""One serving phase: replicas up, the fault, the client's sessions, what all of them left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import outputs
from harness.departure import TimeToLeave
from harness.errors import BadInput
from harness.fleet.protocol import FleetSource
from harness.following import LEAVES
from harness.group_job import GroupJob, Terms
from harness.hosts.protocol import Host
from harness.plan.serving import Phase, Serving
from harness.receipts import Fate, Incomplete, PhaseRecord, PushedHost
from harness.serving import replicas
from harness.serving.fates import (
    Event,
    PhaseFiles,
    ServedLine,
    fates_of,
    finished,
    read_lines,
    sessions_of,
)
from harness.serving.order import Order, Replica, order_json, order_of
from harness.store.protocol import Artifact
from harness.strict import Model
from harness.study import Study
from trainer import contract

CLIENT_SESSIONS = 3
"""A client that is ended is started again; it goes on with what has no end."""
CLIENT_S = 120.0
"""Starting the client, and its warm-up besides the time-outs of its requests."""


class Began(Model):
    """When a phase's first job was started."""

    utc: str


@dataclass(frozen=True)
class Stand:
    """What all phases of a study share."""

    study: Study
    fleet: FleetSource
    hosts: tuple[Host, ...]
    pushed: tuple[PushedHost, ...]
    recipe: Callable[[int], dict[str, Any]]
    """A replica's recipe when that many share the machine."""
    model: str
    """Folder of the candidate in each host's work folder."""
    cases: Sequence[tuple[str, Sequence[int]]]
    """(id, prompt) of the development cases."""
    leave: Callable[[], Incomplete | None]
    """Why serving must not go on; asked all along."""

    @property
    def serving(self) -> Serving:
        """The plan's serving section."""
        serving = self.study.plan.serving
        assert serving is not None
        return serving


def run_phase(stand: Stand, phase: Phase) -> PhaseRecord:
    """Carry a phase out once. What fails makes a failed phase, which is not tried again.

    A second call after this process was ended goes on with what runs, or returns what was recorded.
    Raises TimeToLeave.
    """

    def go() -> PhaseRecord:
        return _carry_out(stand, phase)

    if stand.study.journal.find("outcome", f"serve/{phase.name}") is None:
        _require_time(stand)
    return stand.study.journal.effect(
        f"serve/{phase.name}", PhaseRecord, intent={"replicas": phase.replicas}, act=go, adopt=go
    )


def _require_time(stand: Stand) -> None:
    """Raises TimeToLeave."""
    if (due := stand.leave()) is not None:
        raise TimeToLeave(due)


def _slots(stand: Stand, phase: Phase) -> tuple[replicas.Slot, ...]:
    hosts = stand.hosts[: phase.replicas]
    last = len(hosts) - 1
    return tuple(
        replicas.Slot(
            GroupJob(
                key=f"serve/{phase.name}/{host.name}",
                recipe=stand.recipe(len(hosts)),
                hosts=(host,),
                pushed=stand.pushed,
                model=stand.model,
                limit_s=_limit(stand.serving, phase),
                label=f"serve {phase.name}",
                heartbeat=False,
            ),
            phase.fault if place == last else "none",
        )
        for place, host in enumerate(hosts)
    )


def _limit(serving: Serving, phase: Phase) -> float:
    """Seconds within which a phase must be over, if every attempt takes its whole time-out."""
    asked = serving.requests_of(phase) * serving.attempts + serving.warmup_requests
    if phase.arrivals_per_s is not None:
        requests = serving.requests_of(phase) / phase.arrivals_per_s * 4
        return replicas.START_S + CLIENT_S + requests + asked * serving.timeout_s
    return replicas.START_S + CLIENT_S + asked * serving.timeout_s


def _carry_out(stand: Stand, phase: Phase) -> PhaseRecord:
    study = stand.study
    slots = _slots(stand, phase)
    key = f"began/serve/{phase.name}"
    began = study.journal.effect(
        key, Began, intent={}, act=lambda: Began(utc=study.clock.utc()), adopt=lambda: None
    )
    study.progress.note(f"serve {phase.name}: {phase.replicas} replica(s), fault {phase.fault}")
    why = ""
    order: Order | None = None
    try:
        terms = replicas.start(study, stand.fleet, slots)
        places = replicas.wait_ready(study, slots)
        found = replicas.apply_fault(study, slots, places, terms, stand.serving.timeout_s)
        order = _order(stand, phase, found)
        why = _run_client(stand, phase, slots[0], order, terms)
    except replicas.NotReady as error:
        why = str(error)
    except TimeToLeave:
        replicas.stop(slots)
        raise
    return _record(stand, phase, slots, order or _order(stand, phase, ()), began.utc, why)


def _order(stand: Stand, phase: Phase, found: tuple[Replica, ...]) -> Order:
    study = stand.study
    return order_of(stand.serving, phase, stand.cases, found, run=study.run, seed=study.plan.seed)


def _client_out(phase: Phase) -> str:
    return f"out/serve.{phase.name}.client"


def _run_client(
    stand: Stand, phase: Phase, first: replicas.Slot, order: Order, terms: Terms
) -> str:
    """The client's sessions on the first replica's host; why it did not come to its end, or ''."""
    study, host = stand.study, first.host
    local = study.work / "serving" / phase.name / "order.json"
    local.parent.mkdir(parents=True, exist_ok=True)
    contract.write_json(local, order_json(order))
    remote = f"orders/{phase.name}.json"
    host.put(local, remote)
    arguments = {"order": f"{host.work}/{remote}", "out": f"{host.work}/{_client_out(phase)}"}
    said = ""
    tail = _Tail(host, f"{_client_out(phase)}/events.jsonl")
    for session in range(1, CLIENT_SESSIONS + 1):
        job = f"serve.{phase.name}.client.{session}"
        replicas.start_helper(host, job, "client", arguments, terms)
        while (state := replicas.state_of(study, host, job)).status in ("starting", "running"):
            if stand.leave() is not None:
                host.stop(job, reason=LEAVES)
            _require_time(stand)
            _show(stand, phase, tail.ends())
            study.clock.sleep(replicas.POLL_S)
        if state.exit_code == 0:
            return ""
        state = host.stop(job, reason="its supervisor is gone")  # ends what that one left
        said = f"the client ended with status {state.exit_code}"
        if state.reason is not None:
            said += f" ({state.reason})"
        elif state.exit_code is not None and state.exit_code > 0:
            log = host.read(f"jobs/{job}/log").decode("utf-8", "replace").strip()
            return f"{said}: {(log.splitlines() or ['(empty log)'])[-1][:300]}"
        study.progress.note(f"serve {phase.name}: {said}, session {session}")
    return said


class _Tail:
    """Counts ends in the client's events as they grow; nothing else of them is looked at."""

    def __init__(self, host: Host, path: str) -> None:
        self._host, self._path = host, path
        self._offset, self._ends = 0, 0

    def ends(self) -> int:
        """Requests that have an end so far (a mark cut in two is not counted: for show only)."""
        data = self._host.read(self._path, offset=self._offset)
        self._offset += len(data)
        self._ends += data.count(b'"latency_s"')
        return self._ends


def _show(stand: Stand, phase: Phase, done: int) -> None:
    of = stand.serving.requests_of(phase)
    stand.study.progress.item(
        f"serve {phase.name}", f"request {done}/{of}", done=done, of=of, unit="requests"
    )


def _record(
    stand: Stand,
    phase: Phase,
    slots: tuple[replicas.Slot, ...],
    order: Order,
    began: str,
    why: str,
) -> PhaseRecord:
    study = stand.study
    states = replicas.stop(slots)
    kept = [
        replicas.collect(study, phase, place, slot, state)
        for place, (slot, state) in enumerate(zip(slots, states, strict=True))
    ]
    why = why or next((wrong for _, wrong in kept if wrong), "")
    folder = study.work / "serving" / phase.name
    folder.mkdir(parents=True, exist_ok=True)
    contract.write_json(folder / "order.json", order_json(order))
    events, artifact, lack = _events(stand, phase, slots[0].host, folder)
    served = tuple(
        read_lines(ServedLine, folder / f"served-{place}.jsonl")
        for place, (record, _) in enumerate(kept)
        if record.served is not None
    )
    fates = fates_of(PhaseFiles(order, events, served))
    why = why or lack or _unanswered(phase, fates)
    return PhaseRecord(
        name=phase.name,
        outcome="failed" if why else "passed",
        why=why,
        started_utc=began,
        ended_utc=study.clock.utc(),
        sessions=sessions_of(events),
        replicas=tuple(record for record, _ in kept),
        fates=fates,
        events=artifact,
        order=study.store.put(folder / "order.json", name=f"serving/{phase.name}/order.json"),
    )


def _events(
    stand: Stand, phase: Phase, host: Host, folder: Path
) -> tuple[tuple[Event, ...], Artifact | None, str]:
    """The client's events, stored; what is wrong with them ('' if nothing)."""
    local = folder / "events.jsonl"
    try:
        outputs.fetch(host, f"{_client_out(phase)}/events.jsonl", local)
    except BadInput:
        return (), None, "the client left no events"
    events = read_lines(Event, local)
    artifact = stand.study.store.put(local, name=f"serving/{phase.name}/events.jsonl")
    return events, artifact, "" if finished(events) else "the client did not come to its end"


def _unanswered(phase: Phase, fates: Sequence[Fate]) -> str:
    """In a closed loop every request must be answered; an open one may be too fast on purpose."""
    if phase.arrivals_per_s is not None:
        return ""
    lost = sum(fate.latency_s is None for fate in fates)
    return f"{lost} of {len(fates)} requests have no answer" if lost else ""
