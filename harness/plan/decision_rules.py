"""Faults of declared decisions: what they would decide on is not there, or means nothing."""

from __future__ import annotations

from collections.abc import Iterator

from harness.plan.decisions import Decision
from harness.plan.finding import Finding, error, warning
from harness.plan.parent import PARENT
from harness.plan.plan import REFERENCE, Plan

SCORED = frozenset({"accuracy", "accuracy-difference", "mcnemar", "valid-json-share"})
TRAINED = frozenset({"speed-ratio", "cost-ratio", "bytes-ratio", "parameter-agreement"})
"""What the untrained seed model has none of: it never ran an arm."""
TIMED = frozenset({"speed-ratio", "cost-ratio"})
RANGES = {
    "accuracy": (0.0, 1.0),
    "accuracy-difference": (-1.0, 1.0),
    "mcnemar": (0.0, 1.0),
    "valid-json-share": (0.0, 1.0),
    "parameter-agreement": (0.0, 1.0),
    "serving-token-agreement": (0.0, 1.0),
}
LOW_Z, HIGH_Z = 1.0, 6.0
"""Below, a bound holds in fewer than five of six cases; above, a normal tail means nothing."""


def decision_findings(plan: Plan) -> Iterator[Finding]:
    """All rules of this file, decision by decision."""
    if not any(not decision.exploratory for decision in plan.decisions):
        yield warning("/decisions", "nothing is decided: every decision is exploratory or absent")
    for i, decision in enumerate(plan.decisions):
        at = f"/decisions/{i}"
        yield from _subjects(plan, decision, at)
        yield from _scope(plan, decision, at)
        yield from _numbers(decision, at)


def _subjects(plan: Plan, decision: Decision, at: str) -> Iterator[Finding]:
    named = decision.name
    if decision.statistic in TRAINED:
        for field in ("candidate", "reference"):
            if (who := getattr(decision, field)) in (REFERENCE, PARENT):
                yield error(
                    f"{at}/{field}",
                    f"'{named}' needs arms of this study, in which '{who}' was never trained",
                )
    lone = {arm.name for arm in plan.arms if arm.workers == 1}
    if decision.statistic == "parameter-agreement" and decision.candidate in lone:
        yield warning(f"{at}/candidate", f"'{named}' asks whether one worker agrees with itself")
    if decision.statistic == "bytes-ratio" and decision.reference in lone:
        yield warning(
            f"{at}/reference", f"'{named}' divides by the traffic of a lone worker, near none"
        )
    used = {
        "timer": decision.statistic in TIMED,
        "probes": decision.statistic == "retention-difference",
        "z": decision.bound in ("lower", "upper"),
        "scope": decision.statistic in SCORED,
    }
    for field, wanted in used.items():
        if getattr(decision, field) is not None and not wanted:
            yield error(
                f"{at}/{field}",
                f"'{named}' sets {field}, which '{decision.statistic}' with "
                f"'{decision.bound}' does not use",
            )


def _scope(plan: Plan, decision: Decision, at: str) -> Iterator[Finding]:
    scope = decision.scope
    if scope is None:
        return
    if scope.wordings == "held-out" and not plan.data.tasks.held_out:
        yield error(
            f"{at}/scope/wordings",
            f"'{decision.name}' looks at held-out wordings, and every tested wording is trained",
        )
    trained = set(plan.data.tasks.test_wordings) & set(plan.data.tasks.train_wordings)
    if scope.wordings == "trained" and not trained:
        yield error(
            f"{at}/scope/wordings",
            f"'{decision.name}' looks at trained wordings, and none of them is tested",
        )
    for family in scope.families or ():
        if family not in plan.data.tasks.families:
            yield error(
                f"{at}/scope/families",
                f"'{decision.name}' looks at '{family}', which is no family of this plan",
            )


def _numbers(decision: Decision, at: str) -> Iterator[Finding]:
    low, high = RANGES.get(decision.statistic, (float("-inf"), float("inf")))
    if not low <= decision.margin <= high:
        yield error(
            f"{at}/margin",
            f"'{decision.name}' has a margin of {decision.margin:g}, outside {low:g} to {high:g}"
            " (points are written as fractions)",
        )
    if decision.statistic.endswith("-ratio") and decision.margin <= 0:
        yield error(
            f"{at}/margin", f"'{decision.name}' compares a ratio with a margin of 0 or less"
        )
    if decision.statistic == "mcnemar" and decision.bound == "at-least":
        yield error(
            f"{at}/bound", f"'{decision.name}' passes on a large p value; a small one is evidence"
        )
    if decision.z is not None and not LOW_Z <= decision.z <= HIGH_Z:
        yield warning(f"{at}/z", f"'{decision.name}' has a z of {decision.z:g}, an unusual bound")
