"""Statistics of serving phases."""

from __future__ import annotations

from harness.measuring.question import Found, Missing, NotMeasured, Question
from harness.results import PhaseResult


def throughput_ratio(question: Question) -> Found:
    """Candidate over reference requests a second."""
    ours, theirs = (
        _phase(question, question.decision.candidate),
        _phase(question, question.reference),
    )
    over, under = ours.requests_per_s, theirs.requests_per_s
    if not over or not under:
        raise Missing("a phase has no throughput")
    words = f"{over:.6g} / {under:.6g} requests/s"
    return Found(over / under, words, f"serve: phases {ours.name}, {theirs.name}")


def token_agreement(question: Question) -> Found:
    """Share of the candidate phase's requests answered with the same tokens as in the others."""
    phase = _phase(question, question.decision.candidate)
    if phase.agreement is None:
        raise Missing(f"no other phase answered the cases of '{phase.name}'")
    words = (
        f"{phase.same_tokens} of {phase.requests} requests; {phase.compared} were compared, "
        f"{phase.near_ties} differ at a near tie"
    )
    return Found(phase.agreement, words, f"serve: phase {phase.name} and the others")


def _phase(question: Question, name: str) -> PhaseResult:
    for phase in question.measurements.serving:
        if phase.name == name:
            if phase.outcome == "failed":
                raise Missing(f"the phase '{name}' failed: {phase.why}")
            if phase.outcome == "cut":
                raise NotMeasured(f"the phase '{name}' was {phase.why}")
            return phase
    raise NotMeasured("serving did not run")
