"""Every recorded score beside a new one."""

from __future__ import annotations

from harness.errors import BadInput
from harness.report.evidence import Evidence
from harness.scoring.answers import score
from trainer import contract


def check_scored(evidence: Evidence) -> int:
    """Score every answer again; returns how many. Raises BadInput for the first that differs."""
    count = 0
    for case in evidence.cases:
        if case.expected is None:
            continue
        expected = contract.parse(case.expected)
        for model, told in case.answers.items():
            found = score(told.text, expected, evidence.plan.evaluation.max_answer_bytes)
            reason = "" if found.correct else found.reason
            again = (found.correct, found.valid_json, reason)
            if again != (told.correct, told.valid_json, "" if told.correct else told.reason):
                raise BadInput(
                    f"the answer to {case.id[:16]} is recorded as "
                    f"{'right' if told.correct else f'wrong ({told.reason})'}, and it is "
                    f"{'right' if found.correct else f'wrong ({found.reason})'}",
                    where=f"models/{model}/scores.jsonl",
                )
            count += 1
    return count
