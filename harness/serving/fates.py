"""What became of every request, from the client's events and the replicas' own records. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ConfigDict

from harness.errors import BadInput
from harness.plan.kinds import CountOrZero, NotNegative
from harness.receipts.served import AttemptOutcome, Fate, RequestAttempt
from harness.serving.order import Order
from harness.strict import Model, load, read_plain
from trainer import contract

M = TypeVar("M", bound=Model)


class Answer(Model):
    """An answer as the client took it."""

    latency_s: NotNegative
    tokens: tuple[CountOrZero, ...]
    stopped: Literal["end", "limit"]
    ties: tuple[CountOrZero, ...]
    cached: bool


class Event(Model):
    """A line of events.jsonl; harness/onhost/client.py says which fields each event has."""

    event: Literal[
        "began", "warm-up", "measure", "send", "end", "failed", "interrupted", "finished"
    ]
    at: NotNegative
    """Seconds since this session began."""
    session: CountOrZero | None = None
    utc: str | None = None
    request: str = ""
    attempt: CountOrZero = 0
    replica: str = ""
    outcome: AttemptOutcome | None = None
    seconds: NotNegative | None = None
    status: CountOrZero = 0
    said: str = ""
    answer: Answer | None = None
    latency_s: NotNegative | None = None


class ServedLine(Model):
    """A line of a replica's served-0.jsonl; what else it holds is left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)

    event: Literal["began", "ended", "cached"]
    request: str
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class PhaseFiles:
    """One phase's files, parsed."""

    order: Order
    events: tuple[Event, ...]
    served: tuple[tuple[ServedLine, ...], ...]
    """By replica; one that left no record has none."""


def read_lines(kind: type[M], path: Path) -> tuple[M, ...]:
    """Every whole line of a .jsonl file; a torn last one (its writer was killed) is left out.

    Raises BadInput naming the line.
    """
    try:
        data = read_plain(path)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=str(path)) from None
    lines = data.split(b"\n")[:-1]
    return tuple(
        load(kind, line, where=f"{path} line {number}")
        for number, line in enumerate(lines, start=1)
        if line
    )


def answers_of(events: Iterable[Event]) -> dict[str, Answer]:
    """The answer of every request that has one."""
    return {each.request: each.answer for each in events if each.answer is not None}


def fates_of(files: PhaseFiles) -> tuple[Fate, ...]:
    """Every request of the order, in its order. Raises BadInput for events that do not fit it."""
    known = {asking.request for asking in files.order.requests}
    attempts: dict[str, dict[int, RequestAttempt]] = {name: {} for name in known}
    for event in files.events:
        if event.event not in ("send", "end", "interrupted"):
            continue
        if event.request not in known:
            raise BadInput(f"a request that was not ordered: {event.request[:60]}", where="events")
        made = attempts[event.request]
        if event.event == "send":
            made[event.attempt] = RequestAttempt(replica=event.replica, outcome="interrupted")
        elif event.attempt not in made:
            raise BadInput(f"an end without a send: {event.request[:60]}", where="events")
        elif event.event == "end":
            made[event.attempt] = RequestAttempt(
                replica=made[event.attempt].replica,
                outcome=event.outcome or "malformed",
                seconds=event.seconds,
            )
    answers = answers_of(files.events)
    began, completed = _executions(files.served)
    return tuple(
        _fate(asking.request, asking.case, attempts[asking.request], answers, began, completed)
        for asking in files.order.requests
    )


def _executions(served: Sequence[Sequence[ServedLine]]) -> tuple[Counter[str], Counter[str]]:
    began: Counter[str] = Counter()
    completed: Counter[str] = Counter()
    for lines in served:
        began.update(line.request for line in lines if line.event == "began")
        completed.update(
            line.request
            for line in lines
            if line.event == "ended" and line.stopped in ("end", "limit")
        )
    return began, completed


def _fate(
    request: str,
    case: str,
    attempts: dict[int, RequestAttempt],
    answers: dict[str, Answer],
    began: Counter[str],
    completed: Counter[str],
) -> Fate:
    answer = answers.get(request)
    return Fate(
        request=request,
        case=case,
        attempts=tuple(attempts[number] for number in sorted(attempts)),
        latency_s=answer.latency_s if answer else None,
        tokens=len(answer.tokens) if answer else 0,
        tokens_sha256=contract.hash_of(list(answer.tokens)) if answer else None,
        cached=answer.cached if answer else False,
        executions=began[request],
        completed=completed[request],
    )


def wall_seconds(events: Iterable[Event]) -> float | None:
    """From the start of the measurement to the last end, summed over the client's sessions."""
    total, start, last, measured = 0.0, None, 0.0, False
    for event in events:
        if event.event == "began":
            total += 0.0 if start is None else last - start
            start = None
        elif event.event == "measure":
            start = last = event.at
            measured = True
        elif start is not None and event.event in ("send", "end", "failed"):
            last = event.at
    if not measured:
        return None
    return round(total + (0.0 if start is None else last - start), 6)


def sessions_of(events: Iterable[Event]) -> int:
    """How often the client was started."""
    return sum(event.event == "began" for event in events)


def finished(events: Iterable[Event]) -> bool:
    """Whether the client came to its end."""
    return any(event.event == "finished" for event in events)
