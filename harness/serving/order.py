"""What a phase's client is told to do. Pure, so that a rerun tells it the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from harness.plan.kinds import CountOrZero, NotNegative
from harness.plan.serving import Phase, Serving
from harness.strict import Model
from trainer import contract


class Asking(Model):
    """One request: its identity, the development case and its prompt."""

    request: str
    case: str
    tokens: tuple[CountOrZero, ...]


class Replica(Model):
    """Where a replica, or the front of its fault, listens."""

    name: str
    address: str
    port: CountOrZero
    down: bool = False
    """It was stopped before the phase, so nothing is asked of it to warm up."""


class Order(Model):
    """order.json (harness/onhost/client.py says how it is carried out)."""

    requests: tuple[Asking, ...]
    warmups: tuple[Asking, ...]
    replicas: tuple[Replica, ...]
    concurrency: CountOrZero
    """Closed loop: requests that are out at once; 0: open loop."""
    arrivals_s: tuple[NotNegative, ...] | None = None
    """Open loop: when each request is due, from the start of the measurement."""
    attempts: CountOrZero
    timeout_s: float
    max_new_tokens: CountOrZero


def order_of(
    serving: Serving,
    phase: Phase,
    cases: Sequence[tuple[str, Sequence[int]]],
    replicas: Sequence[Replica],
    *,
    run: str,
    seed: str,
) -> Order:
    """The phase's requests over the first development cases, in order, under fresh identities.

    `cases` are (id, prompt). Identities are hashes over run, phase and place: new in every run and
    phase, and the same in a rerun of this one.
    """
    count = serving.requests_of(phase)

    def asking(kind: str, place: int) -> Asking:
        case, tokens = cases[place % count]
        name = contract.hash_of([run, phase.name, kind, place])[:32]
        return Asking(
            request=name if kind == "request" else f"warm-{name}", case=case, tokens=tuple(tokens)
        )

    rate = phase.arrivals_per_s
    return Order(
        requests=tuple(asking("request", place) for place in range(count)),
        warmups=tuple(asking("warm-up", place) for place in range(serving.warmup_requests)),
        replicas=tuple(replicas),
        concurrency=serving.concurrency_of(phase) if rate is None else 0,
        arrivals_s=None if rate is None else arrivals(rate, count, f"{seed}/serve/{phase.name}"),
        attempts=serving.attempts,
        timeout_s=serving.timeout_s,
        max_new_tokens=serving.max_new_tokens,
    )


def arrivals(per_s: float, count: int, seed: str) -> tuple[float, ...]:
    """Times of a Poisson process, seconds to six decimals, the first at 0; from the seed alone."""
    draw = random.Random(int(contract.hash_of(seed)[:16], 16))
    found, at = [], 0.0
    for _ in range(count):
        found.append(round(at, 6))
        at += draw.expovariate(per_s)
    return tuple(found)


def order_json(order: Order) -> dict[str, Any]:
    """As the client reads it."""
    value: dict[str, Any] = order.to_json()
    return value
