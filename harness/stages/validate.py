"""validate: an independent code path checks inputs, answers, scores and losses after scoring."""

from __future__ import annotations

from collections.abc import Iterator

from harness.errors import Refused
from harness.evidence_folder import materialise
from harness.receipts import (
    Agreement,
    EvaluateReceipt,
    PrepareReceipt,
    TrainReceipt,
    ValidateReceipt,
)
from harness.stages.stamp import Stamp
from harness.study import Receipts, Study
from harness.validation.losses import check_losses, check_retention_losses
from harness.validation.masks import check_masks
from harness.validation.prompts import check_prompts
from harness.validation.report import ValidationReport, merge
from harness.validation.rescoring import check_scores


def validate(study: Study, done: Receipts, stamp: Stamp) -> ValidateReceipt:
    """Check the stored evidence a second way. Raises Refused at the first disagreement."""
    found = merge(_reports(study, done))
    if found.disagreements:
        raise Refused(
            f"the independent validation disagrees in {len(found.disagreements)} place(s): "
            f"{found.disagreements[0]}",
            where=str(study.folder),
            next_command="harness status",
        )
    return ValidateReceipt(
        **stamp.close(),
        checks=tuple(Agreement(check=each.name, count=each.count) for each in found.checks),
        disagreements=(),
    )


def _reports(study: Study, done: Receipts) -> Iterator[ValidationReport]:
    folder = materialise(study, done)
    inputs, tokenizer = folder / "inputs", study.work / "validation-tokenizer.json"
    files = done.of(PrepareReceipt).seed_files
    study.store.fetch(next(each for each in files if each.name == "tokenizer.json"), tokenizer)
    yield check_prompts(study.plan, inputs, tokenizer)
    yield check_masks(study.plan, inputs, tokenizer)
    for model in done.of(EvaluateReceipt).models:
        place = folder / "models" / model.name
        yield check_scores(
            study.plan,
            inputs,
            tokenizer,
            model=model.name,
            role="test",
            answers=place / "answers-test.jsonl",
            scores=place / "scores.jsonl",
        )
        for probe in study.plan.data.retention:
            kept = place / f"retention-{probe.name}.jsonl"
            yield check_retention_losses(inputs, probe.name, model.name, kept)
    for arm in done.of(TrainReceipt).arms:
        losses = [folder / each.name for each in arm.losses]
        yield check_losses(study.plan, inputs, arm.arm, losses)
