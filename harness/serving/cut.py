"""A phase that had to leave before its end: what was answered by then is kept and counted.

Half of a phase is not a smaller phase, so its figures decide nothing; but its requests were sent,
its answers were given, and the record holds them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from harness import outputs
from harness.errors import BadInput, Waiting
from harness.following import LEAVES
from harness.hosts.protocol import Host, JobState
from harness.plan.serving import Phase
from harness.receipts import Fate, Incomplete, PhaseRecord, ReplicaRecord
from harness.serving import replicas
from harness.serving.fates import (
    Event,
    PhaseFiles,
    ServedLine,
    fates_of,
    read_lines,
    sessions_of,
)
from harness.serving.stand import CLIENT_SESSIONS, Stand, client_job, client_out
from harness.store.protocol import Artifact


@dataclass
class _Gathered:
    """Files of a phase that could not be had, a sentence each."""

    lost: list[str] = field(default_factory=list)
    """On hosts that are gone for good."""
    missing: list[str] = field(default_factory=list)


def cut_record(
    stand: Stand,
    phase: Phase,
    slots: tuple[replicas.Slot, ...],
    began_utc: str,
    due: Incomplete,
) -> PhaseRecord:
    """End the phase's jobs and keep what its client and its replicas wrote.

    A host that is gone for good is not asked, and what it held is named. One that does not answer
    is named too, when the deadline ends it anyway; else raises Unreachable.
    """
    gone = stand.study.lost()
    gathered = _Gathered()
    states = _stop(phase, slots, gone)
    kept = tuple(
        _replica(stand, phase, place, slot, states.get(slot.host.name), due, gathered)
        for place, slot in enumerate(slots)
    )
    order = stand.known_order(phase)
    events, client, uncounted = _client(stand, phase, slots[0].host, due, gathered)
    folder = stand.folder(phase)
    served = tuple(
        read_lines(ServedLine, folder / f"served-{place}.jsonl")
        for place, record in enumerate(kept)
        if record.served is not None
    )
    fates = fates_of(PhaseFiles(order, events, served))
    return PhaseRecord(
        name=phase.name,
        outcome="cut",
        why="; ".join((_said(fates, uncounted), due.why, *gathered.missing)),
        started_utc=began_utc,
        ended_utc=stand.study.clock.utc(),
        sessions=sessions_of(events),
        replicas=kept,
        fates=fates,
        events=client,
        order=stand.study.store.put(folder / "order.json", name=f"serving/{phase.name}/order.json"),
        cut=due,
        lost=tuple(gathered.lost),
        uncounted=uncounted,
    )


def _said(fates: tuple[Fate, ...], uncounted: bool) -> str:
    if uncounted:
        return "cut; what was answered is not known, since the client's record could not be had"
    answered = sum(fate.latency_s is not None for fate in fates)
    return f"cut when {answered} of {len(fates)} requests had an answer"


def _stop(
    phase: Phase, slots: tuple[replicas.Slot, ...], gone: dict[str, str]
) -> dict[str, JobState]:
    """End the client, then fronts and replicas, wherever they can be reached."""
    found: dict[str, JobState] = {}
    for job in (client_job(phase, session) for session in range(1, CLIENT_SESSIONS + 1)):
        _end(slots[0].host, job, gone)
    for slot in slots:
        if slot.fault in replicas.FRONTED:
            _end(slot.host, slot.front, gone)
        if (state := _end(slot.host, slot.group.job, gone)) is not None:
            found[slot.host.name] = state
    return found


def _end(host: Host, job: str, gone: dict[str, str]) -> JobState | None:
    """The job's last state; None where it was never started or nobody answers."""
    if host.name in gone:
        return None
    with suppress(Waiting):
        state = host.state(job)
        return None if state.status == "absent" else host.stop(job, reason=LEAVES)
    return None


def _replica(
    stand: Stand,
    phase: Phase,
    place: int,
    slot: replicas.Slot,
    state: JobState | None,
    due: Incomplete,
    gathered: _Gathered,
) -> ReplicaRecord:
    """What one replica left."""
    name, gone = slot.host.name, stand.study.lost()
    nothing = ReplicaRecord(host=name, ready=False, fault=slot.fault, reason="it was not asked")
    if name in gone:
        gathered.lost.append(f"serving/{phase.name}/served-{place}.jsonl: {gone[name]}")
        return nothing.model_copy(update={"reason": gone[name]})
    if state is None:
        return nothing
    try:
        return replicas.collect(stand.study, phase, place, slot, state)[0]
    except Waiting as error:
        if due.because == "lost-host":
            raise
        gathered.missing.append(f"serving/{phase.name}/served-{place}.jsonl: {error}")
        return nothing.model_copy(update={"reason": f"it could not be asked: {error}"})


def _client(
    stand: Stand, phase: Phase, host: Host, due: Incomplete, gathered: _Gathered
) -> tuple[tuple[Event, ...], Artifact | None, bool]:
    """What the client wrote down, nothing where it was not started; whether that cannot be had."""
    name, gone = f"serving/{phase.name}/events.jsonl", stand.study.lost()
    if host.name in gone:
        gathered.lost.append(f"{name}: {gone[host.name]}")
        return (), None, True
    local = stand.folder(phase) / "events.jsonl"
    try:
        outputs.fetch(host, f"{client_out(phase)}/events.jsonl", local)
    except BadInput:
        return (), None, False
    except Waiting as error:
        if due.because == "lost-host":
            raise
        gathered.missing.append(f"{name}: {error}")
        return (), None, True
    return read_lines(Event, local), stand.study.store.put(local, name=name), False
