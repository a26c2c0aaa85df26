"""`harness develop`: train the arms and score development cases, before anything is committed.

Every such run is an attempt in the record: its development.json goes into the archive of the
study that follows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from harness import pipeline
from harness.clock import Clock
from harness.display.progress import Progress
from harness.plan import LoadedPlan
from harness.plan.check import check_plan, require_sound
from harness.plan.kinds import CountOrZero, Sha256
from harness.plan.plan import REFERENCE
from harness.prepared import Prepared
from harness.receipts import PrepareReceipt, ProvisionReceipt, TrainReceipt
from harness.results import Tally
from harness.run import Place, make_place, open_study
from harness.selection import Selected
from harness.stages.evaluate import score_model
from harness.strict import Model, load_file
from harness.study import Receipts, Study
from trainer import contract


class DevelopedModel(Model):
    """One model's development scores."""

    name: str
    overall: Tally
    families: dict[str, Tally]
    valid_json: CountOrZero
    seconds: float


class Development(Model):
    """development.json."""

    schema_: Literal["harness/development/1"] = Field(
        default="harness/development/1", alias="schema"
    )
    run: str
    plan: str
    plan_hash: Sha256
    started_utc: str
    recipe: dict[str, object]
    train_seconds: dict[str, float]
    models: tuple[DevelopedModel, ...]


def develop(loaded: LoadedPlan, runs: Path, progress: Progress, clock: Clock) -> Development:
    """Prepare, train and score the development role. Test cases are never touched."""
    require_sound(check_plan(loaded, fleet_kind="local"))
    place = make_place(loaded, runs, clock, development=True)
    study = open_study(loaded, place, runs, progress, clock)
    try:
        stages = tuple(each for each in pipeline.STAGES if each.name in pipeline.DEVELOPMENT)
        done = pipeline.advance(study, stages)
        return _score(study, place, done)
    finally:
        provisioned = pipeline.recorded(study, "provision")
        if isinstance(provisioned, ProvisionReceipt):
            study.fleet(provisioned).end()
        study.close()


def _score(study: Study, place: Place, done: Receipts) -> Development:
    prepared = load_file(Prepared, study.prepared_path)
    root = prepared.seed_model.parameter_root or ""
    named = {REFERENCE: Selected(parameter_root=root, files=done.of(PrepareReceipt).seed_files)}
    for arm in done.of(TrainReceipt).arms:
        named[arm.arm] = Selected(
            parameter_root=arm.candidate.parameter_root, files=arm.candidate.files
        )
    models = tuple(_model(study, done, name, each) for name, each in named.items())
    record = Development(
        run=study.run,
        plan=study.plan.name,
        plan_hash=study.loaded.hash,
        started_utc=done.of(PrepareReceipt).started_utc,
        recipe=study.plan.recipe.to_json(),
        train_seconds={arm.arm: arm.attempts[-1].seconds for arm in done.of(TrainReceipt).arms},
        models=models,
    )
    contract.write_json(place.folder / "development.json", record.to_json())
    return record


def _model(study: Study, done: Receipts, name: str, selected: Selected) -> DevelopedModel:
    scored = score_model(study, done, name, selected, "development")
    rows = contract.read_lines(study.work / "models" / name / "scores.jsonl")
    families = {row["family"] for row in rows}
    return DevelopedModel(
        name=name,
        overall=_tally(rows),
        families={
            family: _tally([row for row in rows if row["family"] == family])
            for family in sorted(families)
        },
        valid_json=sum(row["valid_json"] for row in rows),
        seconds=scored.attempts[-1].seconds,
    )


def _tally(rows: list[dict[str, object]]) -> Tally:
    return Tally(correct=sum(bool(row["correct"]) for row in rows), cases=len(rows))
