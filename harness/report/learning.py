"""Tables of what was learned: accuracy, wordings, paired contrasts, retention, distances."""

from __future__ import annotations

from collections.abc import Callable

from harness.display import words
from harness.plan.plan import REFERENCE
from harness.receipts import EvaluateReceipt
from harness.report.evidence import Evidence
from harness.report.recount import (
    Recount,
    contrasts,
    families,
    paired_counts,
    recount,
    wordings,
)
from harness.report.table import Row, Table, absent, cell, row
from harness.results import Tally
from harness.statistics.counts import PairedCounts
from harness.statistics.intervals import newcombe
from harness.statistics.mcnemar import exact
from harness.statistics.normal import z_two_sided
from harness.statistics.paired import PairedDifference, paired_loss

NO_SCORES = "no answer was scored"
Z95 = z_two_sided(0.95)


def scores(model: str) -> str:
    """Where a model's answers are."""
    return f"models/{model}/scores.jsonl"


def accuracy(evidence: Evidence) -> Table:
    """Right answers by family and model, counted from the answers."""
    models = evidence.models
    counts = {model: recount(evidence, model) for model in models}
    columns = ("test cases", *models)
    if not any(c.overall for c in counts.values()):
        return absent("accuracy", "Accuracy", NO_SCORES, columns)
    rows = [
        _line("all, correct", counts, lambda c: c.overall, _of),
        _line("all, accuracy", counts, lambda c: c.overall, _share),
    ]
    for name in families(evidence):
        rows.append(_line(name, counts, _family(name), _of))
    rows.append(_line("valid JSON", counts, lambda c: c.valid_json, _of))
    return Table("accuracy", "Accuracy by family and model", columns, tuple(rows),
        note="Counted again from every answer. Right means the requested form and exactly the "
        "right values.")  # fmt: skip


def _family(name: str) -> Callable[[Recount], Tally | None]:
    return lambda count: count.families.get(name)


def _wording(number: int) -> Callable[[Recount], Tally | None]:
    return lambda count: count.wordings.get(str(number))


def _of(found: Tally) -> tuple[int | float, str]:
    return found.correct, f"{found.correct} / {found.cases}"


def _share(found: Tally) -> tuple[int | float, str]:
    return found.correct / found.cases, words.percent(found.correct / found.cases)


def _line(
    header: str,
    counts: dict[str, Recount],
    pick: Callable[[Recount], Tally | None],
    show: Callable[[Tally], tuple[int | float, str]],
) -> Row:
    cells = []
    for model, counted in counts.items():
        found = pick(counted)
        value, text = show(found) if found else (None, None)
        cells.append(cell(value, text, source=scores(model)))
    return row(header, cells, source="models/<model>/scores.jsonl")


def wording_table(evidence: Evidence) -> Table:
    """Right answers by wording; the held-out ones were never trained."""
    counts = {model: recount(evidence, model) for model in evidence.models}
    columns = ("wording", *evidence.models)
    if not any(c.overall for c in counts.values()):
        return absent("wordings", "Held-out wordings", NO_SCORES, columns)
    held_out = evidence.plan.data.tasks.held_out
    rows = []
    for number in wordings(evidence):
        kind = "held out" if number in held_out else "trained"
        rows.append(_line(f"{number} ({kind})", counts, _wording(number), _of))
    rows.append(_line("all held out", counts, lambda c: c.held_out, _of))
    return Table("wordings", "Held-out wordings", columns, tuple(rows),
        note="A held-out wording asks a trained kind of task in words that training never "
        "showed.")  # fmt: skip


def contrast_table(evidence: Evidence) -> Table:
    """Paired contrasts: gained, lost, the difference with an interval, exact McNemar."""
    columns = ("contrast", "gained", "lost", "difference", "95 % interval", "McNemar p")
    rows = []
    for candidate, reference in contrasts(evidence):
        counts = paired_counts(evidence.cases, candidate, reference)
        if counts is not None:
            rows.append(_contrast(candidate, reference, counts))
    if not rows:
        return absent("contrasts", "Paired contrasts", NO_SCORES, columns)
    rows.append(_flip_floor(evidence))
    return Table("contrasts", "Paired contrasts", columns, tuple(rows),
        note="Cases whose correctness changed. Newcombe's method 10; exact one-sided McNemar for a "
        "gain, uncorrected for several comparisons. These describe and do not decide.")  # fmt: skip


def _flip_floor(evidence: Evidence) -> Row:
    """One candidate against itself in batches of another size: differences that mean nothing."""
    found = evidence.measurements.flip_floor if evidence.measurements else None
    source = "floor/scores.jsonl"
    if found is None:
        declared = evidence.plan.evaluation.flip_floor is not None
        note = "not measured" if declared else "the plan declares none"
        return row("flip floor", [cell(None, source="plan.json")] * 5, note=note)
    counts = PairedCounts(
        both=0, gained=len(found.gained), lost=len(found.lost),
        neither=found.cases - len(found.gained) - len(found.lost),
    )  # fmt: skip
    made = _contrast(found.candidate, found.candidate, counts)
    cells = tuple(cell(c.value, c.text, source=source) for c in made.cells)
    words_ = f"{found.candidate} against itself in batches of {found.batch}: rounding alone"
    return row("flip floor", cells, note=words_, source=f"{source}, {scores(found.candidate)}")


def _contrast(candidate: str, reference: str, counts: PairedCounts) -> Row:
    source = f"{scores(candidate)}, {scores(reference)}"
    interval = newcombe(counts, z=Z95)
    p = exact(counts.gained, counts.lost, alternative="gain").p
    low, high = (f"{100 * v:+.2f}" for v in (interval.lower, interval.upper))
    cells = (
        cell(counts.gained, source=source),
        cell(counts.lost, source=source),
        cell(interval.estimate, words.points(interval.estimate), source=source),
        cell(interval.lower, f"{low} to {high} points", source=source),
        cell(p, f"{p:.3g}", source=source),
    )
    return row(f"{candidate} against {reference}", cells, source="models/<model>/scores.jsonl")


def retention_table(evidence: Evidence) -> Table:
    """Mean loss on every probe set, and its change from the untrained model."""
    columns = ("probe set", *evidence.models)
    means = {model: recount(evidence, model).retention for model in evidence.models}
    probes = dict.fromkeys(
        [*(p.name for p in evidence.plan.data.retention), *(k for m in means.values() for k in m)]
    )
    if not probes:
        return absent("retention", "Retention", "the plan declares no probe set", columns)
    rows = [line for probe in probes for line in _retention(evidence, probe, means)]
    return Table("retention", "Retention", columns, tuple(rows),
        note="Mean unweighted loss in nats; a positive change is worse. The interval is the paired "
        "large-sample one over documents.")  # fmt: skip


def _retention(
    evidence: Evidence, probe: str, means: dict[str, dict[str, float]]
) -> tuple[Row, ...]:
    levels, changes, intervals = [], [], []
    for model, found in means.items():
        mean, at = found.get(probe), f"models/{model}/retention-{probe}.jsonl"
        levels.append(cell(mean, None if mean is None else words.loss(mean), source=at))
        if model == REFERENCE:
            changes.append(cell("", source=at))
            intervals.append(cell("", source=at))
            continue
        change = retention_change(evidence, probe, model)
        mean, low, text = None, None, None
        if change is not None:
            mean, low = change.mean, change.lower
            text = f"{change.lower:+.6f} to {change.upper:+.6f}"
        changes.append(cell(mean, None if mean is None else f"{mean:+.6f}", source=at))
        intervals.append(cell(low, text, source=at))
    source = f"models/<model>/retention-{probe}.jsonl"
    return (
        row(f"{probe}, mean loss", levels, source=source),
        row("change", changes, source=source),
        row("95 % interval", intervals, source=source),
    )


def retention_change(evidence: Evidence, probe: str, model: str) -> PairedDifference | None:
    """Paired change of every document's loss; None where the documents do not match."""
    before, after = (_losses(evidence, probe, name) for name in (REFERENCE, model))
    if len(before) < 2 or before.keys() != after.keys():
        return None
    return paired_loss([after[id_] for id_ in before], list(before.values()), z=Z95)


def _losses(evidence: Evidence, probe: str, model: str) -> dict[str, float]:
    """Loss by document; nothing where one was not finite."""
    rows = evidence.retention.get(model, {}).get(probe, ())
    found = {row.id: row.loss for row in rows if row.loss is not None}
    return found if len(found) == len(rows) else {}


def distance_table(evidence: Evidence) -> Table:
    """How far apart candidates' parameters are."""
    columns = ("candidates", "relative L2", "largest difference")
    receipt = evidence.receipt(EvaluateReceipt)
    if receipt is None or not receipt.distances:
        return absent("distances", "Parameter distances", "no candidates were compared", columns)
    source = "receipt evaluate"
    rows = tuple(
        row(
            f"{d.candidate} and {d.reference}",
            (
                cell(d.relative_l2, f"{d.relative_l2:.6g}", source=source),
                cell(d.max_abs, f"{d.max_abs:.6g}", source=source),
            ),
        )
        for d in receipt.distances
    )
    return Table("distances", "Parameter distances", columns, rows)
