"""Decisions: every inequality that the plan declares, from what was measured.

A decision is data. One small function a statistic (harness/measuring/) gives its value, its bounds
and a line of detail; `RULES` compare one of them with the margin. What is missing or not finite
fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from harness.measuring import execution, quality, serving
from harness.measuring.measurements import Measurements
from harness.measuring.question import Found, Missing, NotMeasured, Question
from harness.plan import Plan
from harness.plan.decisions import Statistic
from harness.receipts import Decided

RULES: Mapping[str, Callable[[Found, float], bool]] = {
    "lower": lambda found, margin: found.lower is not None and found.lower > margin,
    "upper": lambda found, margin: found.upper is not None and found.upper < margin,
    "at-least": lambda found, margin: found.value >= margin,
    "at-most": lambda found, margin: found.value <= margin,
}
"""A bound must clear the margin; a value may equal it."""


def decide(
    plan: Plan, measurements: Measurements, *, incomplete: bool = False
) -> tuple[Decided, ...]:
    """Every declared decision in the plan's order, exploratory ones too. Never raises on data.

    In an incomplete study those whose inputs were never measured are left out: not decided.
    """
    asked = (Question(plan, decision, measurements) for decision in plan.decisions)
    found = (_decide(question, incomplete) for question in asked)
    return tuple(decided for decided in found if decided is not None)


def _decide(question: Question, incomplete: bool) -> Decided | None:
    decision = question.decision
    found: Found | None = None
    try:
        found = _finite(STATISTICS[decision.statistic](question))
        detail, source = found.detail, found.source
    except (Missing, ValueError) as error:
        if incomplete and isinstance(error, NotMeasured):
            return None
        detail, source = str(error), "no value: an input is missing or not usable"
    bound = None
    if found is not None and decision.bound in ("lower", "upper"):
        bound = found.lower if decision.bound == "lower" else found.upper
    return Decided(
        name=decision.name,
        claim=decision.claim,
        statistic=decision.statistic,
        candidate=decision.candidate,
        reference=decision.reference,
        value=None if found is None else found.value,
        bound=decision.bound,
        bound_value=bound,
        margin=decision.margin,
        passed=found is not None and RULES[decision.bound](found, decision.margin),
        exploratory=decision.exploratory,
        detail=detail,
        source=source,
    )


def _finite(found: Found) -> Found:
    for name in ("value", "lower", "upper"):
        number = getattr(found, name)
        if number is not None and not math.isfinite(number):
            raise Missing(f"the {name} is not finite")
    return found


STATISTICS: Mapping[Statistic, Callable[[Question], Found]] = {
    "accuracy": quality.accuracy,
    "accuracy-difference": quality.accuracy_difference,
    "mcnemar": quality.mcnemar_p,
    "retention-difference": quality.retention_difference,
    "valid-json-share": quality.valid_json_share,
    "speed-ratio": execution.speed_ratio,
    "cost-ratio": execution.cost_ratio,
    "bytes-ratio": execution.bytes_ratio,
    "parameter-agreement": execution.parameter_agreement,
    "parameter-distance": execution.parameter_distance,
    "serving-throughput-ratio": serving.throughput_ratio,
    "serving-token-agreement": serving.token_agreement,
}
"""How each statistic that a plan may declare is computed."""
