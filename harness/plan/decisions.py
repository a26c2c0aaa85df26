"""What is measured and decided. A decision is data: a statistic, a bound and a margin."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.plan.data import Family
from harness.plan.kinds import Count, Misfit, Name, Positive, Text
from harness.strict import Model

Statistic = Literal[
    "accuracy",
    "accuracy-difference",
    "mcnemar",
    "retention-difference",
    "valid-json-share",
    "speed-ratio",
    "cost-ratio",
    "bytes-ratio",
    "parameter-agreement",
    "parameter-distance",
    "serving-throughput-ratio",
    "serving-token-agreement",
]

Timer = Literal[
    "update-sum", "update-median", "active", "active-plus-checkpoint", "loop", "process"
]

PAIRED = frozenset(
    {
        "accuracy-difference", "mcnemar", "retention-difference", "speed-ratio", "cost-ratio",
        "bytes-ratio", "parameter-distance",
    }
)  # fmt: skip
SERVING = frozenset({"serving-throughput-ratio", "serving-token-agreement"})


class FlipFloor(Model):
    """One candidate answers the test cases again in batches of another size. Its two accuracies
    differ by rounding alone, so no smaller difference between candidates means anything."""

    candidate: Name
    """An arm."""
    batch: Count
    """Prompts at once, the second time."""


class Evaluation(Model):
    """How reference and candidates are scored: greedy, batched, strict."""

    max_new_tokens: Count
    batch: Count | None = None
    """Prompts generated at once; absent: as many as the device's memory holds."""
    autocast: Literal["bf16"] | None = None
    """Precision of generation and retention losses; absent: FP32. Logits are FP32 in any case."""
    max_answer_bytes: Annotated[int, Field(ge=2, le=32768)] = 32768
    flip_floor: FlipFloor | None = None
    """Absent: no floor is measured, and the report says so."""


class Scope(Model):
    """A part of the test cases; an absent field means all."""

    families: tuple[Family, ...] | None = None
    wordings: Literal["trained", "held-out"] | None = None


class Decision(Model):
    """`bound` says what is compared with the margin.

    lower: the lower confidence bound exceeds it; upper: the upper one stays below it;
    at-least, at-most: the value itself.
    """

    name: Name
    claim: Text
    """One sentence in plain words."""
    statistic: Statistic
    candidate: Name
    """An arm, or a serving phase for serving statistics."""
    reference: Name | None = None
    """An arm, a phase, or 'reference' for the untrained seed model."""
    bound: Literal["lower", "upper", "at-least", "at-most"]
    margin: float
    z: Positive | None = None
    """Standard errors of a confidence bound: 2.576 is 99.5 % one-sided."""
    timer: Timer | None = None
    probes: Name | None = None
    """Which retention probes."""
    scope: Scope | None = None
    exploratory: bool = False
    """Exploratory contrasts are shown and never decide."""

    @model_validator(mode="after")
    def _fields_fit(self) -> Decision:
        paired = self.statistic in PAIRED or self.statistic == "serving-throughput-ratio"
        if paired and self.reference is None:
            raise Misfit("/reference", f"the statistic '{self.statistic}' needs a reference")
        if self.statistic in ("accuracy-difference", "retention-difference"):
            if self.bound in ("lower", "upper") and self.z is None:
                raise Misfit("/z", "a confidence bound needs z")
        elif self.bound in ("lower", "upper"):
            raise Misfit("/bound", f"the statistic '{self.statistic}' takes at-least or at-most")
        if self.statistic in ("speed-ratio", "cost-ratio") and self.timer is None:
            raise Misfit("/timer", f"the statistic '{self.statistic}' needs a timer")
        if self.statistic == "retention-difference" and self.probes is None:
            raise Misfit("/probes", "the statistic 'retention-difference' needs probes")
        return self
