"""All checks of one study, over a folder laid out as an archive is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from harness.plan import Plan
from harness.validation.losses import check_losses, check_retention_losses
from harness.validation.masks import check_masks
from harness.validation.prompts import check_prompts
from harness.validation.report import ValidationReport
from harness.validation.rescoring import check_scores
from harness.validation.served import check_served

UNTRAINED = "reference"


def check_everything(
    plan: Plan,
    folder: Path,
    *,
    models: Collection[str] | None = None,
    arms: Collection[str] | None = None,
) -> Iterator[ValidationReport]:
    """Check inputs, then every model's answers and losses, then every arm's training losses, then
    what was served.

    Of a study that ended early, only the models that were scored and the arms that were trained
    are named; without names all of them are due."""
    inputs, vocabulary = folder / "inputs", folder / "tokenizer.json"
    yield check_prompts(plan, inputs, vocabulary)
    yield check_masks(plan, inputs, vocabulary)
    for model in plan.models:
        if models is not None and model not in models:
            continue
        place = folder / "models" / model
        yield check_scores(
            plan, inputs, vocabulary, model=model, role="test",
            answers=place / "answers-test.jsonl", scores=place / "scores.jsonl",
        )  # fmt: skip
        for probes in plan.data.retention:
            kept = place / f"retention-{probes.name}.jsonl"
            yield check_retention_losses(inputs, probes.name, model, kept)
    if plan.evaluation.flip_floor is not None and (models is None or (folder / "floor").is_dir()):
        yield check_scores(
            plan, inputs, vocabulary, model=plan.evaluation.flip_floor.candidate, role="test",
            answers=folder / "floor" / "answers-test.jsonl",
            scores=folder / "floor" / "scores.jsonl",
        )  # fmt: skip
    for arm in plan.arms:
        if arms is not None and arm.name not in arms:
            continue
        place = folder / "arms" / arm.name
        losses = [place / f"losses-{rank}.jsonl" for rank in range(arm.workers)]
        yield check_losses(plan, inputs, arm.name, losses)
    yield check_served(plan, folder)
