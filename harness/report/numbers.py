"""report.json: every table as data, what disagrees, and the hashes it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.receipts import RECEIPTS
from harness.report import learning, record, running, serving
from harness.report.evidence import AFTER_SEAL, Evidence
from harness.report.recount import contrasts, disagreements, flips
from harness.report.table import Table
from harness.report.verdict import decisions, verdict
from harness.results import Flips

REPORTER_VERSION = "3"
"""Raised whenever the same evidence would give other bytes."""

NO_CLOSING = (
    "This report was made without a closing record: preservation, teardown and cost are not known."
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the report says, before it is a file or a page."""

    verdict: str
    outcome: str
    """'pass', 'fail' or 'not run'."""
    tables: dict[str, Table]
    not_run: tuple[str, ...]
    disagreements: tuple[str, ...]
    limits: tuple[str, ...]
    flips: tuple[Flips, ...]
    """Cases whose correctness changed, of every contrast that is shown."""


def numbers(evidence: Evidence) -> Numbers:
    """All tables, counted again from the evidence."""
    sentence, outcome = verdict(evidence)
    made = (
        decisions(evidence),
        learning.accuracy(evidence),
        learning.wording_table(evidence),
        learning.contrast_table(evidence),
        learning.retention_table(evidence),
        learning.distance_table(evidence),
        running.execution(evidence),
        running.attempts(evidence),
        running.development(evidence),
        running.trials(evidence),
        serving.serving(evidence),
        record.cost(evidence),
        record.hosts(evidence),
        record.commitments(evidence),
        record.validation(evidence),
        record.preservation(evidence),
        running.stages(evidence),
        running.predictions(evidence),
        record.machines(evidence),
        record.preflight(evidence),
    )
    closing = evidence.closing
    said = list(evidence.limits)
    if closing is None:
        said.append(NO_CLOSING)
    elif closing.preservation is not None and closing.preservation.not_kept:
        said.append(f"By an explicit abandonment {closing.release.why}.")
    elif closing.release.basis == "abandoned":
        why = closing.release.why
        said.append(f"The evidence was abandoned before it was proved preserved: {why}")
    return Numbers(
        verdict=sentence,
        outcome=outcome,
        tables={table.key: table for table in made},
        not_run=_not_run(evidence),
        disagreements=disagreements(evidence),
        limits=tuple(said),
        flips=tuple(flips(evidence.cases, *pair) for pair in contrasts(evidence)),
    )


def _not_run(evidence: Evidence) -> tuple[str, ...]:
    """Stages without a receipt; a closing record stands for those after the seal."""
    closed = AFTER_SEAL if evidence.closing is not None else ()
    return tuple(
        stage
        for stage in RECEIPTS
        if stage != "report"
        and stage not in closed
        and (stage not in evidence.receipts or not getattr(evidence.receipts[stage], "ran", True))
    )


def report_value(evidence: Evidence, found: Numbers) -> dict[str, Any]:
    """The whole of report.json."""
    plan, results, closing = evidence.plan, evidence.results, evidence.closing
    return {
        "schema": "harness/report/1",
        "reporter": {"name": "harness", "version": REPORTER_VERSION},
        "evidence": {
            "archive_sha256": closing.archive.sha256 if closing else None,
            "closing": None if closing is None else closing.to_json(),
            "files": dict(evidence.files),
        },
        "study": {
            "plan": plan.name,
            "plan_hash": evidence.plan_hash,
            "question": plan.question,
            "run": results.run,
            "identity": evidence.prepared.identity,
            "models": list(evidence.models),
        },
        "verdict": {
            "sentence": found.verdict,
            "outcome": found.outcome,
            "source": "plan.json, results.json",
        },
        "tables": {key: table.to_json() for key, table in found.tables.items()},
        "losses": {
            arm: {
                "source": f"arms/{arm}/losses-0.jsonl",
                "points": [[point.update, point.loss] for point in points] or "not run",
            }
            for arm, points in evidence.losses.items()
        },
        "flips": [flip.to_json() for flip in found.flips],
        "environments": {host: dict(found) for host, found in evidence.environments.items()},
        "limits": list(found.limits),
        "not_run": list(found.not_run),
        "disagreements": list(found.disagreements),
    }
