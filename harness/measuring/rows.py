"""The lines of the files that numbers are read from, strictly: scores, retention losses, losses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ConfigDict

from harness.errors import BadInput
from harness.plan.kinds import Count, CountOrZero
from harness.scoring.tables import CaseRow
from harness.strict import Model, load

L = TypeVar("L", bound=Model)


class ScoreLine(Model):
    """A line of models/NAME/scores.jsonl: one scored answer."""

    id: str
    role: str
    family: str
    wording: int
    correct: bool
    valid_json: bool
    reason: str
    text: str


class RetentionLine(Model):
    """A line of models/NAME/retention-PROBE.jsonl."""

    id: str
    loss: float | None = None
    """Mean nats a target, unweighted; null where it was not finite."""
    targets: CountOrZero


class LossLine(Model):
    """What is read of a line of arms/ARM/losses-R.jsonl; its other fields are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)

    update: Count
    loss: float
    """Global weighted mean, nats."""


def read_test_cases(path: Path) -> tuple[CaseRow, ...] | None:
    """The scored test cases of a scores.jsonl, in its order; other roles are left out.

    None when the file is not there. Raises BadInput naming the line of the first fault, also for
    a case that is scored twice or that is correct and not valid JSON.
    """
    if not path.is_file():
        return None
    found: dict[str, CaseRow] = {}
    for where, line in _lines(ScoreLine, path):
        if line.role != "test":
            continue
        if line.id in found:
            raise BadInput(f"the case {line.id[:80]} is scored twice", where=where)
        try:
            found[line.id] = CaseRow(
                line.id, line.family, line.wording, correct=line.correct, valid_json=line.valid_json
            )
        except ValueError as error:
            raise BadInput(str(error), where=where) from None
    return tuple(found.values())


def read_retention(path: Path) -> dict[str, float | None] | None:
    """Loss in nats by document id; None in place of one that was not finite.

    None when the file is not there. Raises BadInput naming the line of the first fault.
    """
    if not path.is_file():
        return None
    found: dict[str, float | None] = {}
    for where, line in _lines(RetentionLine, path):
        if line.id in found:
            raise BadInput(f"the document {line.id[:80]} appears twice", where=where)
        found[line.id] = line.loss
    return found


def read_losses(path: Path, *, updates: int) -> tuple[float, ...]:
    """The global loss of every update, in nats.

    Raises BadInput when the file cannot be read or its updates are not 1 to `updates` in order.
    """
    losses = []
    for number, (where, line) in enumerate(_lines(LossLine, path), start=1):
        if line.update != number:
            raise BadInput(f"has update {line.update} where {number} is due", where=where)
        losses.append(line.loss)
    if len(losses) != updates:
        raise BadInput(f"has {len(losses)} updates, and {updates} were run", where=str(path))
    return tuple(losses)


def _lines(kind: type[L], path: Path) -> Iterator[tuple[str, L]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=str(path)) from None
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line:
            where = f"{path} line {number}"
            yield where, load(kind, line, where=where)
