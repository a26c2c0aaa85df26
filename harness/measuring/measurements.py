"""Everything that decisions and results are made from, as one frozen value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import BadInput
from harness.exposure import ID_DIGITS
from harness.measuring.arms import done_attempt, measure_arm
from harness.measuring.rows import read_retention, read_test_cases
from harness.measuring.served import read_serving
from harness.plan import Plan
from harness.prepared import Prepared, TargetCounts
from harness.receipts import (
    ArmRecord,
    Distance,
    EvaluateReceipt,
    ModelScores,
    ServeReceipt,
    TrainReceipt,
)
from harness.results import ArmResult, FloorResult, PhaseResult
from harness.scoring.tables import CaseRow, compare


@dataclass(frozen=True, slots=True)
class ModelMeasured:
    """One scored model: the reference, or an arm's candidate."""

    name: str
    parameter_root: str
    cases: tuple[CaseRow, ...]
    """Scored test cases. Development cases are never among them."""
    retention: Mapping[str, Mapping[str, float | None]]
    """Loss in mean nats a target, by probe set and document id; None where it was not finite."""
    evaluation_seconds: float
    """The job of the attempt that was done."""
    cases_lack: str = ""
    """Why the test cases are not those that were prepared; decisions on them then fail."""
    retention_lack: Mapping[str, str] = field(default_factory=dict)
    """The same for probe sets."""


@dataclass(frozen=True, slots=True)
class Measurements:
    """What was measured, by name. A model or arm that is absent was not measured."""

    models: Mapping[str, ModelMeasured]
    """'reference' first, then the parent where there is one, then arms in running order."""
    arms: Mapping[str, ArmResult]
    """In running order."""
    distances: tuple[Distance, ...]
    flip_floor: FloorResult | None = None
    serving: tuple[PhaseResult, ...] = ()
    """Serving phases in the declared order."""


def read_measurements(
    evidence_folder: Path,
    plan: Plan,
    train: TrainReceipt | None,
    evaluate: EvaluateReceipt | None,
    prepared: Prepared,
    *,
    microbatches: Mapping[str, int] | None = None,
    serve: ServeReceipt | None = None,
) -> Measurements:
    """Read models/NAME/scores.jsonl, models/NAME/retention-PROBE.jsonl, arms/ARM/losses-0.jsonl and
    serving/PHASE/.

    Without `train` no arm was trained, without `evaluate` no model was scored. `microbatches` is
    what probe chose (ProbeReceipt.microbatch), for arms that declare none; 0 is not known. A file,
    case or document that is missing is remembered and fails the decisions that need it. Raises
    BadInput for a file or receipt that is malformed.
    """
    chosen = microbatches or {}
    records = {record.arm: record for record in (train.arms if train else ())}
    scored = {scores.name: scores for scores in evaluate.models} if evaluate else {}
    return Measurements(
        models={
            name: _model(evidence_folder / "models" / name, plan, prepared, scored[name])
            for name in plan.models
            if name in scored
        },
        arms={
            arm.name: measure_arm(
                evidence_folder / "arms" / arm.name,
                arm,
                records[arm.name],
                _targets(prepared, records[arm.name]),
                microbatch=arm.microbatch or chosen.get(arm.name, 0),
            )
            for arm in plan.arms
            if arm.name in records
        },
        distances=evaluate.distances if evaluate else (),
        flip_floor=_floor(evidence_folder, plan, evaluate),
        serving=read_serving(evidence_folder, plan, serve),
    )


def _floor(folder: Path, plan: Plan, evaluate: EvaluateReceipt | None) -> FloorResult | None:
    """The candidate's answers beside its own in batches of the other size. Raises BadInput where
    they are not of the same cases."""
    declared = plan.evaluation.flip_floor
    if declared is None or evaluate is None or evaluate.floor is None:
        return None
    second = folder / "floor" / "scores.jsonl"
    first = folder / "models" / declared.candidate / "scores.jsonl"
    try:
        flips = compare(read_test_cases(second) or (), read_test_cases(first) or ())
    except ValueError as error:
        raise BadInput(str(error), where=str(second)) from None
    return FloorResult(
        candidate=declared.candidate,
        batch=declared.batch,
        cases=flips.counts.n,
        gained=flips.gained,
        lost=flips.lost,
    )


def _targets(prepared: Prepared, record: ArmRecord) -> TargetCounts:
    try:
        return prepared.arms[record.arm]
    except KeyError:
        raise BadInput(f"has no counts of the arm '{record.arm}'", where="prepared.json") from None


def _model(folder: Path, plan: Plan, prepared: Prepared, scores: ModelScores) -> ModelMeasured:
    cases = read_test_cases(folder / "scores.jsonl")
    retention: dict[str, Mapping[str, float | None]] = {}
    lacking: dict[str, str] = {}
    for probes in plan.data.retention:
        losses = read_retention(folder / f"retention-{probes.name}.jsonl")
        retention[probes.name] = losses or {}
        known = prepared.exposure.get("retention")
        lack = _lack(losses, probes.count, known, f"retention-{probes.name}.jsonl")
        if lack:
            lacking[probes.name] = lack
    ids = None if cases is None else [row.case_id for row in cases]
    return ModelMeasured(
        name=scores.name,
        parameter_root=scores.parameter_root,
        cases=cases or (),
        retention=retention,
        evaluation_seconds=done_attempt(scores.attempts, f"model '{scores.name}'").seconds,
        cases_lack=_lack(ids, plan.data.roles.test, prepared.exposure.get("test"), "scores.jsonl"),
        retention_lack=lacking,
    )


def _lack(
    ids: Iterable[str] | None, declared: int, prepared: Iterable[str] | None, file: str
) -> str:
    """Why these ids are not the ones that were prepared, or ''.

    `prepared` holds the first digits of every id that was prepared.
    """
    if ids is None:
        return f"{file} is missing"
    found = list(ids)
    if len(found) != declared:
        return f"{file} has {len(found)} of {declared} declared"
    known = None if prepared is None else set(prepared)
    for one in found:
        if known is not None and one[:ID_DIGITS] not in known:
            return f"{file} has {one[:ID_DIGITS]}, which was not prepared"
    return ""
