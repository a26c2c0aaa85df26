"""validate: an independent code path checks inputs, answers, scores and losses after scoring."""

from __future__ import annotations

from harness.errors import Refused
from harness.evidence_folder import materialise, write_receipts
from harness.receipts import Agreement, ValidateReceipt
from harness.stages.stamp import Stamp
from harness.study import Receipts, Study
from harness.validation.everything import check_everything
from harness.validation.report import merge


def validate(study: Study, done: Receipts, stamp: Stamp) -> ValidateReceipt:
    """Check the stored evidence a second way. Raises Refused at the first disagreement."""
    folder = materialise(study, done)
    write_receipts(folder, done)
    found = merge(check_everything(study.plan, folder))
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
