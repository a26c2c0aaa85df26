"""Counting again from the cases: accuracies, flips, retention means. Nothing is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.decide import decide
from harness.measuring.rows import RetentionLine, ScoreLine
from harness.plan.plan import REFERENCE
from harness.receipts import TrainReceipt
from harness.report.evidence import Case, Evidence
from harness.results import Flips, ModelResult, Tally
from harness.statistics.counts import PairedCounts, count_pairs
from harness.strict import Model

TOLERANCE = 1e-9
"""Relative difference up to which two figures count as the same."""


@dataclass(frozen=True, slots=True)
class Recount:
    """What the cases say of one model; None where it was not scored."""

    overall: Tally | None
    families: dict[str, Tally]
    wordings: dict[str, Tally]
    held_out: Tally | None
    valid_json: Tally | None
    retention: dict[str, float]


def recount(evidence: Evidence, model: str) -> Recount:
    """Count one model's answers and average its retention losses."""
    held_out = set(evidence.plan.data.tasks.held_out)
    cases = evidence.cases
    return Recount(
        overall=tally(cases, model),
        families={name: found for name in families(evidence) if (found := tally(
            (c for c in cases if c.family == name), model))},
        wordings={str(number): found for number in wordings(evidence) if (found := tally(
            (c for c in cases if c.wording == number), model))},
        held_out=tally((c for c in cases if c.wording in held_out), model),
        valid_json=tally(cases, model, lambda answer: answer.valid_json),
        retention={
            probe: mean
            for probe, rows in evidence.retention.get(model, {}).items()
            if (mean := mean_loss(rows)) is not None
        },
    )  # fmt: skip


def tally(
    cases: Iterable[Case],
    model: str,
    right: Callable[[ScoreLine], bool] = lambda answer: answer.correct,
) -> Tally | None:
    """Right of all among the cases that the model answered; None when it answered none."""
    answers = [case.answers[model] for case in cases if model in case.answers]
    if not answers:
        return None
    return Tally(correct=sum(right(answer) for answer in answers), cases=len(answers))


def mean_loss(rows: Sequence[RetentionLine]) -> float | None:
    """Mean over documents; None where one was not finite or there is none."""
    losses = [row.loss for row in rows if row.loss is not None]
    return math.fsum(losses) / len(losses) if losses and len(losses) == len(rows) else None


def families(evidence: Evidence) -> tuple[str, ...]:
    """Families in the plan's order."""
    seen = {case.family for case in evidence.cases}
    declared = [name for name in evidence.plan.data.tasks.families if name in seen]
    return (*declared, *sorted(seen.difference(declared)))


def wordings(evidence: Evidence) -> tuple[int, ...]:
    """Wording numbers that occur, ascending."""
    return tuple(sorted({case.wording for case in evidence.cases}))


def flips(cases: Iterable[Case], candidate: str, reference: str) -> Flips:
    """Cases on which the two differ in correctness, in case order."""
    both = [c for c in cases if candidate in c.answers and reference in c.answers]
    return Flips(
        candidate=candidate,
        reference=reference,
        gained=tuple(
            c.id for c in both if c.answers[candidate].correct > c.answers[reference].correct
        ),
        lost=tuple(
            c.id for c in both if c.answers[candidate].correct < c.answers[reference].correct
        ),
    )


def paired_counts(cases: Iterable[Case], candidate: str, reference: str) -> PairedCounts | None:
    """The four counts over the cases that both answered; None when there is none."""
    both = [c for c in cases if candidate in c.answers and reference in c.answers]
    if not both:
        return None
    return count_pairs(
        [case.answers[candidate].correct for case in both],
        [case.answers[reference].correct for case in both],
    )


def contrasts(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """(candidate, reference) pairs that are shown: every arm against the untrained model, then
    what results.json and the plan's decisions compare."""
    arms = evidence.plan.arm_names
    pairs = [(arm, REFERENCE) for arm in arms]
    pairs += [(f.candidate, f.reference) for f in evidence.results.flips]
    pairs += [
        (d.candidate, d.reference)
        for d in evidence.plan.decisions
        if d.reference is not None and {d.candidate, d.reference} <= set(evidence.plan.models)
    ]
    return tuple(dict.fromkeys(pairs))


def disagreements(evidence: Evidence) -> tuple[str, ...]:
    """One sentence for everything in results.json that the evidence does not bear out."""
    return tuple(_all(evidence))


def _all(evidence: Evidence) -> Iterator[str]:
    results = evidence.results
    for name, ours, theirs in (
        ("plan hash", evidence.plan_hash, results.plan_hash),
        ("identity", evidence.prepared.identity, results.identity),
        ("plan hash of prepared.json", evidence.prepared.plan_hash, evidence.plan_hash),
    ):
        if ours != theirs:
            yield f"{name}: {ours} from the evidence, {theirs} in the files that name it"
    for result in results.models:
        yield from _model(result, recount(evidence, result.name), len(evidence.cases))
    for claimed in results.flips:
        found = flips(evidence.cases, claimed.candidate, claimed.reference)
        for side in ("gained", "lost"):
            ours, theirs = getattr(found, side), getattr(claimed, side)
            if set(ours) != set(theirs):
                yield (
                    f"{claimed.candidate} against {claimed.reference}, cases {side}: "
                    f"{len(ours)} from the answers, {len(theirs)} in results.json"
                    + (" (other cases)" if len(ours) == len(theirs) else "")
                )
    yield from _measured(evidence)
    yield from _ranks(evidence)


def _model(result: ModelResult, ours: Recount, cases: int) -> Iterator[str]:
    claims: list[tuple[str, Tally | float | None, Tally | float | None]] = [
        ("correct answers", ours.overall, result.overall),
        ("valid JSON", ours.valid_json, result.valid_json),
        ("held-out wordings", ours.held_out, result.held_out),
    ]
    for what, mine, theirs in (
        ("family", ours.families, result.families),
        ("wording", ours.wordings, result.wordings),
        ("retention", ours.retention, result.retention),
    ):
        for key in dict.fromkeys([*mine, *theirs]):
            claims.append((f"{what} {key}", mine.get(key), theirs.get(key)))
    for name, found, claimed in claims:
        if not _same(found, claimed):
            yield (
                f"{result.name}, {name}: {_shown(found)} from the evidence, "
                f"{_shown(claimed)} in results.json"
            )
    if ours.overall is not None and ours.overall.cases != cases:
        yield f"{result.name} answered {ours.overall.cases} of {cases} test cases"


def _measured(evidence: Evidence) -> Iterator[str]:
    """Arms and decisions computed again, field by field."""
    if evidence.measurements is None:
        return
    arms = {arm.name: arm for arm in evidence.results.arms}
    for name, arm in evidence.measurements.arms.items():
        yield from _fields(f"arm {name}", arm, arms.get(name))
    if evidence.measurements.flip_floor is not None:
        yield from _fields(
            "flip floor", evidence.measurements.flip_floor, evidence.results.flip_floor
        )
    phases = {phase.name: phase for phase in evidence.results.serving}
    for phase in evidence.measurements.serving:
        yield from _fields(f"serving phase {phase.name}", phase, phases.get(phase.name))
    decided = {one.name: one for one in evidence.results.decisions}
    incomplete = evidence.results.incomplete is not None
    for one in decide(evidence.plan, evidence.measurements, incomplete=incomplete):
        yield from _fields(f"decision {one.name}", one, decided.get(one.name))


def _fields(what: str, ours: Model, theirs: Model | None) -> Iterator[str]:
    if theirs is None:
        yield f"{what} is in the evidence and not in results.json"
        return
    for name in type(ours).model_fields:
        found, claimed = getattr(ours, name), getattr(theirs, name)
        if isinstance(found, Model) and isinstance(claimed, Model):
            yield from _fields(f"{what}, {name}", found, claimed)
        elif not _same(found, claimed):
            yield f"{what}, {name}: {found} from the evidence, {claimed} in results.json"


def _ranks(evidence: Evidence) -> Iterator[str]:
    """The trainer's own receipts against those that the train receipt holds."""
    train = evidence.receipt(TrainReceipt)
    for record in train.arms if train is not None else ():
        ranks = evidence.ranks.get(record.arm, ())
        if ranks and ranks != record.ranks:
            yield f"arm {record.arm}: its receipt-R.json files differ from receipt train"


def _same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float | int) and isinstance(theirs, float | int):
        return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return _nothing(ours) == _nothing(theirs)


def _nothing(value: object) -> object:
    """A tally of no cases is no tally."""
    return None if isinstance(value, Tally) and value.cases == 0 else value


def _shown(value: Tally | float | None) -> str:
    if isinstance(value, Tally):
        return f"{value.correct} of {value.cases}"
    return "nothing" if value is None else str(value)
