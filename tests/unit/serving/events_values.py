"""A phase's files written by hand: orders, events and replicas' records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.plan.serving import Phase, Serving
from harness.receipts import PhaseRecord
from harness.serving.fates import Event, PhaseFiles, ServedLine, fates_of
from harness.serving.order import Order, Replica, order_of
from harness.store.protocol import Artifact
from harness.strict import build

CASES = [(f"case-{number}", [number + 1, 7]) for number in range(4)]
KEPT = Artifact(name="order.json", sha256="a" * 64, bytes=1)


def serving_of(*phases: Phase, **changes: Any) -> Serving:
    value = {
        "candidate": "pair", "requests": 4, "concurrency": 2, "attempts": 2, "timeout_s": 1.0,
        "warmup_requests": 1, "max_new_tokens": 8,
        "phases": [phase.to_json() for phase in phases], **changes,
    }  # fmt: skip
    return build(Serving, value, where="serving")


def phase_of(name: str, replicas: int = 2, fault: str = "none", **changes: Any) -> Phase:
    value = {"name": name, "replicas": replicas, "fault": fault, **changes}
    return build(Phase, value, where="phase")


def order_for(serving: Serving, phase: Phase, run: str = "r1") -> Order:
    found = [
        Replica(name=f"host-{place}", address="127.0.0.1", port=1000 + place)
        for place in range(phase.replicas)
    ]
    return order_of(serving, phase, CASES, found, run=run, seed="s")


def event(kind: str, at: float, **fields: Any) -> Event:
    return build(Event, {"event": kind, "at": at, **fields}, where="event")


def answer(tokens: Sequence[int], latency_s: float = 0.5, **changes: Any) -> dict[str, Any]:
    return {
        "latency_s": latency_s, "tokens": list(tokens), "stopped": "end", "ties": [],
        "cached": False, **changes,
    }  # fmt: skip


def files_of(
    order: Order, events: Sequence[Event], served: Sequence[Sequence[ServedLine]] = ()
) -> PhaseFiles:
    return PhaseFiles(order, tuple(events), tuple(tuple(lines) for lines in served))


def record_of(name: str, files: PhaseFiles, outcome: str = "passed", why: str = "") -> PhaseRecord:
    value = {
        "name": name, "outcome": outcome, "why": why, "started_utc": "t", "ended_utc": "t",
        "sessions": 1, "replicas": [], "fates": [fate.to_json() for fate in fates_of(files)],
        "order": KEPT.to_json(),
    }  # fmt: skip
    return build(PhaseRecord, value, where="record")
