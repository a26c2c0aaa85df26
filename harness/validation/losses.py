"""Are the recorded losses whole, finite, and of as many targets as the inputs have?"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, isclose, isfinite, nan, pi
from pathlib import Path
from typing import Any

from harness.plan import Plan
from harness.validation.report import Findings, ValidationReport

NUMBERS = ("loss", "local_loss_sum", "weighted_targets", "lr", "grad_norm", "seconds")
CLOSE = 1e-9
"""Relative difference that adding floats in another order may make."""
RATE_CLOSE = 1e-6
"""As far as a rate that was kept in FP32 may be off."""


def check_losses(plan: Plan, inputs: Path, arm: str, losses: Sequence[Path]) -> ValidationReport:
    """Check an arm's losses-R.jsonl files, one a worker, against the inputs' own target counts."""
    findings = Findings()
    chosen = plan.arm(arm)
    findings.expect(
        "a losses file a worker",
        len(losses) == chosen.workers,
        f"arm {arm} has {len(losses)} losses files and {chosen.workers} workers",
    )
    weights: list[float] = []
    with findings.form(f"the schedule or train.{chosen.corpus}.jsonl"):
        weights = _weights(findings, inputs, chosen.corpus)
    for path in losses:
        rows = findings.lines(path)
        findings.expect(
            "a line an update",
            [row.get("update") for row in rows] == list(range(1, plan.recipe.updates + 1)),
            f"arm {arm}, {path.name}: the updates are not 1 to {plan.recipe.updates}",
        )
        for row, expected in zip(rows, weights, strict=False):
            where = f"arm {arm}, {path.name}, update {row.get('update')}"
            bad = [name for name in NUMBERS if not _finite(row.get(name))]
            findings.expect("finite losses", not bad, f"{where}: {', '.join(bad)} is not a number")
            counted: Any = row.get("weighted_targets")
            findings.expect(
                "weighted targets recounted",
                _finite(counted) and isclose(counted, expected, rel_tol=CLOSE),
                f"{where}: {counted} weighted targets, the inputs have {expected}",
            )
            rate: Any = row.get("lr")
            due = _learning_rate(plan, row.get("update"))
            findings.expect(
                "learning rates recomputed",
                _finite(rate) and isclose(rate, due, rel_tol=RATE_CLOSE, abs_tol=1e-15),
                f"{where}: the learning rate is {rate}, the schedule says {due:g}",
            )
    return findings.report()


def check_retention_losses(inputs: Path, name: str, model: str, losses: Path) -> ValidationReport:
    """Check a model's retention-NAME.jsonl: same documents, finite losses, targets counted."""
    findings = Findings()
    rows, probes = (
        findings.lines(losses),
        findings.lines(inputs / f"retention.{name}.jsonl", "id", "targets"),
    )
    findings.expect(
        "retention alignment",
        [row.get("id") for row in rows] == [probe["id"] for probe in probes],
        f"{model}: {losses.name} has other documents than the probes {name}",
    )
    for row, probe in zip(rows, probes, strict=False):
        where = f"{model}, probes {name}, {probe['id'][:16]}"
        fine = _finite(row.get("loss")) and row["loss"] >= 0
        findings.expect("finite retention losses", fine, f"{where}: the loss is {row.get('loss')}")
        own = _size(probe)
        findings.expect(
            "retention targets recounted",
            row.get("targets") == own,
            f"{where}: {row.get('targets')} targets, the inputs have {own}",
        )
    return findings.report()


def _weights(findings: Findings, inputs: Path, corpus: str) -> list[float]:
    """Weighted targets of every update, counted from the corpus and the schedule."""
    rows = findings.lines(inputs / f"train.{corpus}.jsonl", "weight", "targets")
    found = findings.value(inputs / "schedule.json")
    sizes = [row["weight"] * _size(row) for row in rows]
    updates = found["updates"] if isinstance(found, dict) else []
    return [sum(sizes[one] for one in update) for update in updates]


def _learning_rate(plan: Plan, update: Any) -> float:
    """What the declared schedule gives an update (docs/contract.md, 'The objective')."""
    shape, last, peak = plan.recipe.schedule, plan.recipe.updates, plan.recipe.optimizer.lr
    if not isinstance(update, int) or not 1 <= update <= last:
        return nan
    if update <= shape.warmup_updates:
        return peak * update / shape.warmup_updates
    left = (last - update) / max(1, last - shape.warmup_updates)
    if shape.kind == "cosine":
        left = 0.5 + 0.5 * cos(pi - pi * left)
    elif shape.kind == "constant":
        left = 1.0
    return peak * (shape.floor + (1 - shape.floor) * left)


def _size(row: Any) -> int:
    return sum(stop - first for first, stop in row["targets"])


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)
