"""One serving phase: replicas up, the fault, the client's sessions, what all of them left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness import outputs
from harness.departure import TimeToLeave
from harness.errors import BadInput, Waiting
from harness.group_job import GroupJob, Terms
from harness.hosts.protocol import Host
from harness.plan.serving import Phase, Serving
from harness.receipts import Fate, PhaseRecord
from harness.serving import replicas
from harness.serving.cut import cut_record
from harness.serving.fates import (
    Event,
    PhaseFiles,
    ServedLine,
    fates_of,
    finished,
    read_lines,
    sessions_of,
)
from harness.serving.stand import CLIENT_SESSIONS, Stand, client_job, client_out
from harness.store.protocol import Artifact
from harness.strict import Model
from harness.study import Study

CLIENT_S = 120.0
"""Starting the client, and its warm-up besides the time-outs of its requests."""


class Began(Model):
    """When a phase's first job was started."""

    utc: str


def run_phase(stand: Stand, phase: Phase) -> PhaseRecord:
    """Carry a phase out once. What fails makes a failed phase, which is not tried again.

    A second call after this process was ended goes on with what runs, or returns what was recorded.
    One that has to leave is cut, also when it began before this process. Raises TimeToLeave when
    the time is over before it begins.
    """

    def go() -> PhaseRecord:
        return _carry_out(stand, phase)

    if not has_begun(stand.study, phase):
        _require_time(stand)
    return stand.study.journal.effect(
        f"serve/{phase.name}", PhaseRecord, intent={"replicas": phase.replicas}, act=go, adopt=go
    )


def has_begun(study: Study, phase: Phase) -> bool:
    """Whether jobs of the phase may have been started."""
    return study.journal.find("intent", f"serve/{phase.name}") is not None


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
    try:
        _require_time(stand)
        terms = replicas.start(study, stand.fleet, slots)
        places = replicas.wait_ready(study, slots, lambda: _require_time(stand))
        found = replicas.apply_fault(study, slots, places, terms, stand.serving.timeout_s)
        stand.order(phase, found)
        why = _run_client(stand, phase, slots[0], terms)
    except replicas.NotReady as error:
        why = str(error)
    except Waiting as error:
        due = error.incomplete if isinstance(error, TimeToLeave) else stand.leave()
        if due is None:
            raise
        if not _client_ended(stand, phase, slots[0].host):
            return cut_record(stand, phase, slots, began.utc, due)
    return _record(stand, phase, slots, began.utc, why)


def _client_ended(stand: Stand, phase: Phase, host: Host) -> bool:
    """Whether the client came to its end, on hosts that are all still there: then nothing is cut,
    however late this side looks."""
    if stand.study.lost():
        return False
    with suppress(Waiting):
        jobs = (client_job(phase, session) for session in range(1, CLIENT_SESSIONS + 1))
        return any(host.state(job).exit_code == 0 for job in jobs)
    return False


def _run_client(stand: Stand, phase: Phase, first: replicas.Slot, terms: Terms) -> str:
    """The client's sessions on the first replica's host; why it did not come to its end, or ''."""
    study, host = stand.study, first.host
    remote = f"orders/{phase.name}.json"
    host.put(stand.folder(phase) / "order.json", remote)
    arguments = {"order": f"{host.work}/{remote}", "out": f"{host.work}/{client_out(phase)}"}
    said = ""
    tail = _Tail(host, f"{client_out(phase)}/events.jsonl")
    for session in range(1, CLIENT_SESSIONS + 1):
        job = client_job(phase, session)
        replicas.start_helper(host, job, "client", arguments, terms)
        while (state := replicas.state_of(study, host, job)).status in ("starting", "running"):
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
    folder, order = stand.folder(phase), stand.known_order(phase)
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
        outputs.fetch(host, f"{client_out(phase)}/events.jsonl", local)
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
