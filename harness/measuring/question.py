"""What a statistic is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from harness.measuring.measurements import Measurements
from harness.plan import Plan
from harness.plan.decisions import Decision


class Missing(Exception):
    """An input that is not there or not usable: the decision fails and says this sentence."""


class NotMeasured(Missing):
    """An input was never measured: in a study that had to end early nothing is decided on it."""


@dataclass(frozen=True, slots=True)
class Question:
    """One decision with everything that it may look at."""

    plan: Plan
    decision: Decision
    measurements: Measurements

    @property
    def reference(self) -> str:
        """The declared reference. Raises Missing when there is none."""
        if self.decision.reference is None:
            raise Missing("the decision declares no reference")
        return self.decision.reference


@dataclass(frozen=True, slots=True)
class Found:
    """A statistic's value in its own unit, its bounds where it has some, and where it is from."""

    value: float
    detail: str
    source: str
    lower: float | None = None
    upper: float | None = None
