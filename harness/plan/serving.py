"""Serving phases of the candidate that the plan names."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.plan.kinds import Count, CountOrZero, Name, Positive
from harness.strict import Model


class Phase(Model):
    """One phase, run once, in the declared order."""

    name: Name
    replicas: Count
    fault: Literal[
        "none", "stopped", "killed", "late-answer", "silent", "wrong-identity", "truncated"
    ]
    """What happens to the last replica."""


class Serving(Model):
    """A closed loop over the first development cases."""

    candidate: Name
    """The arm whose candidate is served, named before any score exists."""
    requests: Count
    concurrency: Count
    attempts: Annotated[int, Field(ge=1, le=10)]
    """At most this many a request, over the replicas, identity kept."""
    timeout_s: Positive
    warmup_requests: CountOrZero
    max_new_tokens: Count
    cache: bool = False
    phases: Annotated[tuple[Phase, ...], Field(min_length=1)]
