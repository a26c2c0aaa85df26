"""Serving phases of the candidate that the plan names."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.plan.kinds import Count, CountOrZero, Name, Positive
from harness.strict import Model

DEFAULT_SLOTS = 16
DEFAULT_QUEUE = 64


class Phase(Model):
    """One phase, run once, in the declared order."""

    name: Name
    replicas: Count
    fault: Literal[
        "none", "stopped", "killed", "late-answer", "silent", "wrong-identity", "truncated"
    ]
    """What happens to the last replica."""
    requests: Count | None = None
    """Absent: as many as the serving section says."""
    concurrency: Count | None = None
    """Absent: as many at once as the serving section says."""
    arrivals_per_s: Positive | None = None
    """Open loop: requests come at random (Poisson) times at this mean rate, whatever became of
    those before; concurrency then means nothing."""


class Serving(Model):
    """Requests over the first development cases, in a closed loop unless a phase is open."""

    candidate: Name
    """The arm whose candidate is served, named before any score exists."""
    requests: Count
    concurrency: Count
    attempts: Annotated[int, Field(ge=1, le=10)]
    """At most this many a request, over the replicas, identity kept."""
    timeout_s: Positive
    """Of one attempt."""
    warmup_requests: CountOrZero
    max_new_tokens: Count
    cache: bool = False
    """Whether a replica keeps answers by request identity, for retries; hits are counted."""
    slots: Count | None = None
    """Requests that a replica generates at once; absent: the largest concurrency, 16 if open."""
    queue: CountOrZero | None = None
    """Requests that may wait at a replica besides; more are refused. Absent: 64."""
    autocast: Literal["bf16"] | None = None
    """Absent: FP32, so that tokens do not depend on what shares a batch but for near ties."""
    phases: Annotated[tuple[Phase, ...], Field(min_length=1)]

    def requests_of(self, phase: Phase) -> int:
        """Requests of a phase."""
        return phase.requests or self.requests

    def concurrency_of(self, phase: Phase) -> int:
        """Requests that a closed phase has out at once."""
        return phase.concurrency or self.concurrency

    @property
    def most_requests(self) -> int:
        """Of the largest phase."""
        return max(self.requests_of(phase) for phase in self.phases)

    @property
    def slots_in_use(self) -> int:
        """Requests that a replica generates at once, alike in all phases."""
        if self.slots is not None:
            return self.slots
        closed = [self.concurrency_of(p) for p in self.phases if p.arrivals_per_s is None]
        opened = [DEFAULT_SLOTS] if len(closed) < len(self.phases) else []
        return max(closed + opened)

    @property
    def queue_in_use(self) -> int:
        """Requests that may wait at a replica."""
        return DEFAULT_QUEUE if self.queue is None else self.queue
