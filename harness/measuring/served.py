"""Serving phases in figures: throughput, latencies, failures, agreement of tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BadInput
from harness.plan import Plan
from harness.plan.serving import Phase, Serving
from harness.receipts import Fate, PhaseRecord, ServeReceipt
from harness.results import PhaseResult
from harness.serving.fates import (
    Answer,
    PhaseFiles,
    ServedLine,
    answers_of,
    fates_of,
    read_lines,
    sessions_of,
    wall_seconds,
)
from harness.serving.fates import Event as ClientEvent
from harness.serving.order import Order
from harness.strict import load_file

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A phase's answers beside those of the other phases, by case."""

    compared: int
    same: int
    near_ties: int


def read_serving(
    evidence_folder: Path, plan: Plan, serve: ServeReceipt | None
) -> tuple[PhaseResult, ...]:
    """Count every phase again from serving/PHASE/{order.json,events.jsonl,served-R.jsonl}.

    Raises BadInput for a file that is malformed.
    """
    if plan.serving is None or serve is None or not serve.ran:
        return ()
    records = {record.name: record for record in serve.phases}
    files = {
        phase.name: _read(evidence_folder / "serving" / phase.name, records[phase.name])
        for phase in plan.serving.phases
        if phase.name in records
    }
    return tuple(
        summarise(plan.serving, phase, records[phase.name], files)
        for phase in plan.serving.phases
        if phase.name in records
    )


def _read(folder: Path, record: PhaseRecord) -> PhaseFiles:
    events: tuple[ClientEvent, ...] = ()
    if record.events is not None:
        events = read_lines(ClientEvent, folder / "events.jsonl")
    found = PhaseFiles(
        order=load_file(Order, folder / "order.json"),
        events=events,
        served=tuple(
            read_lines(ServedLine, folder / f"served-{place}.jsonl")
            for place, replica in enumerate(record.replicas)
            if replica.served is not None
        ),
    )
    if fates_of(found) != record.fates:
        raise BadInput("the receipt tells other fates than the events", where=str(folder))
    return found


def summarise(
    serving: Serving, phase: Phase, record: PhaseRecord, files: Mapping[str, PhaseFiles]
) -> PhaseResult:
    """One phase in figures; `files` holds all phases, for the comparison of tokens."""
    own = files[phase.name]
    fates = fates_of(own)
    answered = [fate for fate in fates if fate.latency_s is not None]
    first_failed = [fate for fate in fates if _failed_first(fate)]
    wall = wall_seconds(own.events)
    agreement = agree(phase.name, files)
    opened = phase.arrivals_per_s is not None
    return PhaseResult(
        name=phase.name,
        replicas=phase.replicas,
        fault=phase.fault,
        loop="open" if opened else "closed",
        concurrency=None if opened else serving.concurrency_of(phase),
        arrivals_per_s=phase.arrivals_per_s,
        outcome=record.outcome,
        why=record.why,
        requests=len(fates),
        answered=len(answered),
        first_failures=len(first_failed),
        retries_answered=sum(fate.latency_s is not None for fate in first_failed),
        failures=failures(fates),
        duplicates=sum(max(0, fate.executions - 1) for fate in fates),
        cache_hits=sum(fate.cached for fate in fates),
        sessions=sessions_of(own.events),
        wall_s=wall,
        requests_per_s=_rate(len(answered), wall),
        tokens_per_s=_rate(sum(fate.tokens for fate in answered), wall),
        latency_s=latencies([fate.latency_s for fate in answered if fate.latency_s is not None]),
        compared=agreement.compared,
        same_tokens=agreement.same,
        near_ties=agreement.near_ties,
        agreement=agreement.same / len(fates) if agreement.compared and fates else None,
        uncounted=record.uncounted,
    )


def _failed_first(fate: Fate) -> bool:
    """Whether its first attempt failed; one that the client's own end cut off did not."""
    first = fate.attempts[0].outcome if fate.attempts else "interrupted"
    return first not in ("answered", "interrupted")


def failures(fates: Iterable[Fate]) -> dict[str, int]:
    """Failed attempts by outcome."""
    made = (attempt.outcome for fate in fates for attempt in fate.attempts)
    return dict(sorted(Counter(outcome for outcome in made if outcome != "answered").items()))


def _rate(count: int, seconds: float | None) -> float | None:
    return round(count / seconds, 6) if seconds else None


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    """Percentiles and mean; empty without any."""
    if not seconds:
        return {}
    found = {f"p{each}": round(percentile(seconds, each), 6) for each in PERCENTILES}
    return {**found, "mean": round(math.fsum(seconds) / len(seconds), 6)}


def percentile(values: Sequence[float], percent: float) -> float:
    """Linear interpolation between order statistics (Hyndman and Fan 1996, type 7)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def agree(phase: str, files: Mapping[str, PhaseFiles]) -> Agreement:
    """Compare a phase's answers with every other phase's answer to the same case."""
    by_case: dict[str, list[tuple[str, Answer]]] = {}
    for name, each in files.items():
        answers = answers_of(each.events)
        for asking in each.order.requests:
            if asking.request in answers:
                by_case.setdefault(asking.case, []).append((name, answers[asking.request]))
    compared = same = ties = 0
    for found in by_case.values():
        own = [answer for name, answer in found if name == phase]
        others = [answer for name, answer in found if name != phase]
        if not own or not others:
            continue
        compared += len(own)
        for answer in own:
            differing = [other for other in others if other.tokens != answer.tokens]
            same += not differing
            ties += bool(differing) and all(_tied(answer, other) for other in differing)
    return Agreement(compared, same, ties)


def _tied(one: Answer, other: Answer) -> bool:
    """Whether two answers part where one of them says that two tokens were as likely."""
    pairs = zip(one.tokens, other.tokens, strict=False)
    shorter = min(len(one.tokens), len(other.tokens))
    place = next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)
    return place in one.ties or place in other.ties
