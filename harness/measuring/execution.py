"""Statistics of how arms were executed: time, cost, bytes, parameters."""

from __future__ import annotations

import math

from harness.measuring.question import Found, Missing, NotMeasured, Question
from harness.results import ArmResult


def speed_ratio(question: Question) -> Found:
    """Reference over candidate seconds of the declared timer: above 1, the candidate is faster."""
    ours, theirs = _arm(question, question.decision.candidate), _arm(question, question.reference)
    value = _ratio(_timer(question, theirs), _timer(question, ours), f"'{ours.name}'")
    words = f"{_timer(question, theirs):.6g} s / {_timer(question, ours):.6g} s"
    return Found(value, f"{question.decision.timer}, slowest rank: {words}", _receipts(question))


def cost_ratio(question: Question) -> Found:
    """Candidate over reference allocated device seconds, before network charges."""
    ours, theirs = _arm(question, question.decision.candidate), _arm(question, question.reference)
    value = _ratio(_allocated(question, ours), _allocated(question, theirs), f"'{theirs.name}'")
    words = f"{_allocated(question, ours):.6g} / {_allocated(question, theirs):.6g} device seconds"
    how = "summed over ranks" if question.decision.timer == "process" else "slowest rank x workers"
    return Found(value, f"{question.decision.timer}, {how}: {words}", _receipts(question))


def _allocated(question: Question, arm: ArmResult) -> float:
    if question.decision.timer == "process":
        return arm.allocated_seconds
    return _timer(question, arm) * arm.workers


def bytes_ratio(question: Question) -> Found:
    """Candidate over reference transmitted bytes; received ones are the same data again."""
    ours, theirs = _arm(question, question.decision.candidate), _arm(question, question.reference)
    value = _ratio(ours.sent_bytes, theirs.sent_bytes, f"'{theirs.name}'")
    words = f"transmitted by all hosts {ours.sent_bytes} B / {theirs.sent_bytes} B"
    return Found(value, f"{words}, management traffic included", _receipts(question))


def parameter_agreement(question: Question) -> Found:
    """1 if all ranks report the candidate's parameter root, else 0."""
    arm = _arm(question, question.decision.candidate)
    words = "report one root" if arm.ranks_agree else "do not all report the root"
    detail = f"{arm.workers} rank(s) {words} {arm.parameter_root}"
    return Found(1.0 if arm.ranks_agree else 0.0, detail, f"train: arms/{arm.name}")


def parameter_distance(question: Question) -> Found:
    """Relative L2 distance of two candidates' parameters."""
    pair = question.decision.candidate, question.reference
    for distance in question.measurements.distances:
        if pair in (
            (distance.candidate, distance.reference), (distance.reference, distance.candidate)
        ):  # fmt: skip
            words = f"relative to '{distance.reference}', largest difference {distance.max_abs:.6g}"
            return Found(distance.relative_l2, words, "evaluate: distances")
    raise NotMeasured(f"'{pair[0]}' and '{pair[1]}' were not compared")


def _arm(question: Question, name: str) -> ArmResult:
    try:
        return question.measurements.arms[name]
    except KeyError:
        raise NotMeasured(f"'{name}' was not trained, so it has no execution") from None


def _timer(question: Question, arm: ArmResult) -> float:
    timer = question.decision.timer or "process"
    value: float | None = getattr(arm.timers, timer.replace("-", "_"))
    if value is None:
        raise Missing(f"'{arm.name}' has no timer '{timer}'")
    return value


def _ratio(over: float, under: float, whose: str) -> float:
    if not (math.isfinite(over) and math.isfinite(under)):
        raise Missing("a figure is not finite")
    if under <= 0:
        raise Missing(f"the figure of {whose} is {under:g}, so there is no ratio")
    return over / under


def _receipts(question: Question) -> str:
    return f"train: arms/{question.decision.candidate}, arms/{question.reference}"
