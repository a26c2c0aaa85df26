"""The second code path, run after scoring: it shares nothing with what it checks.

Allowed here: the standard library, `tokenizers`, `trainer.contract` and the typed plan. Each check
returns a `ValidationReport`; it never changes a file and never raises for what it finds.
"""

from harness.validation.everything import check_everything
from harness.validation.losses import check_losses, check_retention_losses
from harness.validation.masks import check_masks
from harness.validation.prompts import check_prompts
from harness.validation.report import Check, ValidationReport, merge
from harness.validation.rescoring import check_scores
from harness.validation.served import check_served

__all__ = [
    "Check",
    "ValidationReport",
    "check_everything",
    "check_losses",
    "check_masks",
    "check_prompts",
    "check_retention_losses",
    "check_scores",
    "check_served",
    "merge",
]
