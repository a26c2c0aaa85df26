"""report.json as a typed model: what its published schema is written from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.closing import ClosingRecord
from harness.plan.kinds import Sha256
from harness.results import Flips
from harness.strict import Model

NotRun = str
"""'not run', or 'not run: why'."""


class Reporter(Model):
    """What made the report."""

    name: Literal["harness"]
    version: str


class Basis(Model):
    """What the report was made from."""

    archive_sha256: Sha256 | None
    closing: ClosingRecord | None
    files: dict[str, Sha256]
    """By path in the archive."""


class StudyNames(Model):
    """Which study and run this is."""

    plan: str
    plan_hash: Sha256
    question: str
    run: str
    identity: Sha256
    models: tuple[str, ...]
    """The reference, then the arms in running order."""


class Verdict(Model):
    """Over the decisions that decide."""

    sentence: str
    outcome: Literal["pass", "fail", "not run"]
    source: str


class ReportCell(Model):
    """One figure and where it came from. `text` is how it is shown, where that differs."""

    value: str | int | float | bool
    source: str = Field(min_length=1)
    text: str | None = None


class ReportRow(Model):
    """A row: cells under the columns after the first."""

    header: str
    note: str
    detail: str
    source: str
    cells: tuple[ReportCell, ...]


class ReportTable(Model):
    """A table as data."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[ReportRow, ...] | NotRun


class LossCurve(Model):
    """[update, loss] of every update."""

    source: str
    points: tuple[tuple[int, float], ...] | NotRun


class ReportDocument(Model):
    """The whole of report.json."""

    schema_: Literal["harness/report/1"] = Field(alias="schema")
    reporter: Reporter
    evidence: Basis
    study: StudyNames
    verdict: Verdict
    tables: dict[str, ReportTable]
    losses: dict[str, LossCurve]
    flips: tuple[Flips, ...] = ()
    """Case ids gained and lost, of every contrast."""
    environments: dict[str, dict[str, str]]
    limits: tuple[str, ...]
    not_run: tuple[str, ...]
    disagreements: tuple[str, ...]
