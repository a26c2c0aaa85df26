"""Statistics of scored cases and retention losses."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.measuring.measurements import ModelMeasured
from harness.measuring.question import Found, Missing, NotMeasured, Question
from harness.scoring.tables import CaseRow, compare
from harness.statistics import mcnemar
from harness.statistics.counts import PairedCounts
from harness.statistics.intervals import newcombe
from harness.statistics.normal import coverage, z_two_sided
from harness.statistics.paired import paired_accuracy_from_counts, paired_loss


def accuracy(question: Question) -> Found:
    """Share of the candidate's cases that are correct."""
    rows = _cases(question, question.decision.candidate)
    correct = sum(row.correct for row in rows)
    return Found(correct / len(rows), f"{correct} of {len(rows)} correct", _scores(question))


def valid_json_share(question: Question) -> Found:
    """Share of the candidate's answers that are strict JSON objects."""
    rows = _cases(question, question.decision.candidate)
    valid = sum(row.valid_json for row in rows)
    return Found(valid / len(rows), f"{valid} of {len(rows)} valid JSON objects", _scores(question))


def accuracy_difference(question: Question) -> Found:
    """Candidate minus reference accuracy, a share of cases; positive is better."""
    counts, z = _counts(question), question.decision.z
    beside = newcombe(counts, z=z or z_two_sided(0.95))
    newcombe_words = f"Newcombe 10 at z={beside.z:.6g}: [{beside.lower:.6f}, {beside.upper:.6f}]"
    words = [_flip_words(counts)]
    value, lower, upper = (counts.gained - counts.lost) / counts.n, None, None
    if z is not None:
        paired = paired_accuracy_from_counts(counts, z=z)
        value, lower, upper = paired.mean, paired.lower, paired.upper
        words += [_bound_words(paired.standard_deviation, z, lower, upper)]
    words += [newcombe_words, _p_words(counts)]
    return Found(value, ", ".join(words), _scores(question), lower, upper)


def mcnemar_p(question: Question) -> Found:
    """Exact one-sided p that the candidate gained more than it lost by chance flips."""
    counts = _counts(question)
    p = mcnemar.exact(counts.gained, counts.lost, alternative="gain").p
    return Found(p, f"{_flip_words(counts)}, {_p_words(counts)}", _scores(question))


def _counts(question: Question) -> PairedCounts:
    candidate = _cases(question, question.decision.candidate)
    return compare(candidate, _cases(question, question.reference)).counts


def _cases(question: Question, name: str) -> list[CaseRow]:
    """The model's test cases within the decision's scope, at least one."""
    model = _model(question, name)
    if model.cases_lack:
        raise Missing(f"'{name}': {model.cases_lack}")
    rows = list(_in_scope(question, model.cases))
    if not rows:
        raise Missing(f"'{name}' has no scored test case in this scope")
    return rows


def _in_scope(question: Question, rows: tuple[CaseRow, ...]) -> Iterator[CaseRow]:
    scope, tasks = question.decision.scope, question.plan.data.tasks
    for row in rows:
        if scope is not None and scope.families is not None and row.family not in scope.families:
            continue
        trained = row.wording in tasks.train_wordings
        if (
            scope is not None
            and scope.wordings is not None
            and trained != (scope.wordings == "trained")
        ):
            continue
        yield row


def _model(question: Question, name: str) -> ModelMeasured:
    try:
        return question.measurements.models[name]
    except KeyError:
        raise NotMeasured(f"'{name}' was not scored") from None


def _scores(question: Question) -> str:
    names = [name for name in (question.decision.candidate, question.decision.reference) if name]
    return f"evaluate: {', '.join(f'models/{name}/scores.jsonl' for name in names)}"


def _flip_words(counts: PairedCounts) -> str:
    return f"n={counts.n}, gained {counts.gained}, lost {counts.lost}"


def _bound_words(deviation: float, z: float, lower: float, upper: float) -> str:
    label = coverage(z).label
    return f"s={deviation:.6g}, z={z:g} ({label}): [{lower:.6f}, {upper:.6f}]"


def _p_words(counts: PairedCounts) -> str:
    gained, lost = counts.gained, counts.lost
    gain = mcnemar.exact(gained, lost, alternative="gain").p
    two = mcnemar.exact(gained, lost, alternative="two-sided").p
    mid = mcnemar.mid_p(gained, lost, alternative="two-sided").p
    return f"McNemar exact p={gain:.4g} one-sided for gain, {two:.4g} two-sided, mid-p {mid:.4g}"


def retention_difference(question: Question) -> Found:
    """Candidate minus reference loss on the declared probes, nats a target; positive is worse."""
    probes, z = question.decision.probes or "", question.decision.z
    ours = _losses(question, question.decision.candidate, probes)
    theirs = _losses(question, question.reference, probes)
    if ours.keys() != theirs.keys():
        raise Missing(f"the document {min(ours.keys() ^ theirs.keys())[:16]} is not paired")
    ids = sorted(ours)
    paired = paired_loss([ours[i] for i in ids], [theirs[i] for i in ids], z=z or 1.0)
    names = (question.decision.candidate, question.reference)
    source = ", ".join(f"models/{name}/retention-{probes}.jsonl" for name in names)
    source, deviation = f"evaluate: {source}", paired.standard_deviation
    words = f"n={paired.n} documents, mean {paired.mean:+.6f} nats, "
    if z is None:
        return Found(paired.mean, f"{words}s={deviation:.6g}", source)
    words += _bound_words(deviation, z, paired.lower, paired.upper)
    return Found(paired.mean, words, source, paired.lower, paired.upper)


def _losses(question: Question, name: str, probes: str) -> dict[str, float]:
    model = _model(question, name)
    if probes in model.retention_lack:
        raise Missing(f"'{name}': {model.retention_lack[probes]}")
    found: dict[str, float] = {}
    for identity, loss in model.retention.get(probes, {}).items():
        if loss is None or not math.isfinite(loss):
            raise Missing(f"the loss of '{name}' on document {identity[:16]} is not finite")
        found[identity] = loss
    if not found:
        raise Missing(f"'{name}' has no losses on the probes '{probes}'")
    return found
