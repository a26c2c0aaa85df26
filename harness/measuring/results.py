"""results.json from what was measured and decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.measuring.measurements import Measurements, ModelMeasured
from harness.plan import Plan
from harness.plan.plan import REFERENCE
from harness.prepared import Prepared
from harness.receipts import Decided
from harness.results import Flips, ModelResult, Predicted, Results, Shortfall, Tally
from harness.scoring.tables import CaseRow, compare


def results(
    *,
    plan: Plan,
    prepared: Prepared,
    run: str,
    measurements: Measurements,
    decisions: Sequence[Decided],
    stages: Mapping[str, float],
    predicted: Sequence[Predicted],
    inputs: Mapping[str, str],
    limits: Sequence[str] = (),
    not_run: Sequence[str] = (),
    incomplete: Shortfall | None = None,
) -> Results:
    """The whole of results.json. Pure: the same arguments give the same value.

    `stages` are seconds by stage, `inputs` hashes of receipts by name. What was not measured
    whole is added to `limits`, one sentence each.
    """
    return Results(
        schema="harness/results/1",
        plan=plan.name,
        plan_hash=prepared.plan_hash,
        run=run,
        identity=prepared.identity,
        models=tuple(_model(plan, model) for model in measurements.models.values()),
        arms=tuple(measurements.arms.values()),
        flips=tuple(_flips(measurements, pair) for pair in _pairs(plan, measurements)),
        distances=measurements.distances,
        flip_floor=measurements.flip_floor,
        serving=measurements.serving,
        decisions=tuple(decisions),
        stages=dict(stages),
        predicted=tuple(predicted),
        inputs=dict(inputs),
        limits=tuple(dict.fromkeys((*limits, *_lacking(plan, measurements)))),
        not_run=tuple(not_run),
        incomplete=incomplete,
    )


def _model(plan: Plan, model: ModelMeasured) -> ModelResult:
    cases, families = model.cases, plan.data.tasks.families
    wordings = sorted({*plan.data.tasks.test_wordings, *(row.wording for row in cases)})
    held_out = plan.data.tasks.held_out
    return ModelResult(
        name=model.name,
        parameter_root=model.parameter_root,
        overall=tally(cases),
        families={name: tally(r for r in cases if r.family == name) for name in families},
        wordings={str(w): tally(r for r in cases if r.wording == w) for w in wordings},
        held_out=tally(row for row in cases if row.wording in held_out),
        valid_json=Tally(correct=sum(row.valid_json for row in cases), cases=len(cases)),
        retention=dict(_means(model)),
        evaluation_seconds=model.evaluation_seconds,
    )


def tally(rows: Iterable[CaseRow]) -> Tally:
    """Correct of all."""
    found = list(rows)
    return Tally(correct=sum(row.correct for row in found), cases=len(found))


def _means(model: ModelMeasured) -> Iterator[tuple[str, float]]:
    """Mean loss of the probe sets that are whole; the others are absent, never zero."""
    for probes, losses in model.retention.items():
        finite = [loss for loss in losses.values() if loss is not None]
        whole = len(finite) == len(losses) and probes not in model.retention_lack
        if whole and finite:
            yield probes, math.fsum(finite) / len(finite)


def _pairs(plan: Plan, measurements: Measurements) -> Iterator[tuple[str, str]]:
    """Each arm against the reference, then each later arm against the first; what can be paired."""
    first, *later = plan.arm_names
    wanted = [(arm, REFERENCE) for arm in plan.arm_names] + [(arm, first) for arm in later]
    for candidate, reference in wanted:
        if _whole(measurements, candidate) and _whole(measurements, reference):
            yield candidate, reference


def _whole(measurements: Measurements, name: str) -> bool:
    model = measurements.models.get(name)
    return model is not None and bool(model.cases) and not model.cases_lack


def _flips(measurements: Measurements, pair: tuple[str, str]) -> Flips:
    candidate, reference = (measurements.models[name] for name in pair)
    found = compare(candidate.cases, reference.cases)
    return Flips(candidate=pair[0], reference=pair[1], gained=found.gained, lost=found.lost)


def _lacking(plan: Plan, measurements: Measurements) -> Iterator[str]:
    for name in plan.models:
        model = measurements.models.get(name)
        if model is None:
            yield f"The model '{name}' was not scored."
            continue
        for lack in (model.cases_lack, *model.retention_lack.values()):
            if lack:
                yield f"The evaluation of '{name}' is not whole: {lack}."
    for arm in plan.arm_names:
        if arm not in measurements.arms:
            yield f"The arm '{arm}' was not trained."
