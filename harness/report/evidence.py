"""The evidence of one study as a frozen value: all that a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ConfigDict, Field

from harness.closing import ClosingRecord
from harness.measuring.measurements import Measurements
from harness.measuring.rows import RetentionLine, ScoreLine
from harness.plan import Plan
from harness.prepared import Prepared
from harness.receipts import (
    Attestation,
    CommitReceipt,
    RankReceipt,
    Receipt,
    SelectReceipt,
    StageName,
)
from harness.results import Results, Tally
from harness.strict import Model

AFTER_SEAL: tuple[StageName, ...] = ("seal", "preserve", "release", "terminate")
"""Stages whose record is in closing.json, since the archive cannot hold it."""

R = TypeVar("R", bound=Receipt)


PLAN_COMMITTED = "plan and prepared inputs"
SELECTION_COMMITTED = "selection"


class Commit(Model):
    """One commitment in git."""

    what: str
    """PLAN_COMMITTED or SELECTION_COMMITTED."""
    commit: str
    branch: str
    paths: dict[str, str] = Field(default_factory=dict)
    """What it holds: a member of the archive -> its path in the repository."""


class DevelopedModel(Model):
    """What is read of one model of a development run."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)

    name: str
    overall: Tally


class DevelopmentRun(Model):
    """A run of `harness develop` before anything was committed: an attempt in the record."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)

    run: str
    started_utc: str
    models: tuple[DevelopedModel, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One test case with every model's answer."""

    id: str
    family: str
    wording: int
    prompt: str | None
    """None when the evidence does not hold the operator's side of the inputs."""
    expected: str | None
    """The right answer as JSON text."""
    answers: Mapping[str, ScoreLine]
    """By model; a model that did not answer is absent."""


@dataclass(frozen=True, slots=True)
class LossPoint:
    """The global weighted mean loss of one update."""

    update: int
    loss: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """An unpacked archive and its closing record, parsed."""

    plan: Plan
    plan_hash: str
    prepared: Prepared
    results: Results
    closing: ClosingRecord | None
    commits: tuple[Commit, ...]
    receipts: Mapping[StageName, Receipt]
    """A stage that is absent did not run."""
    cases: tuple[Case, ...]
    retention: Mapping[str, Mapping[str, tuple[RetentionLine, ...]]]
    """By model, then by probe set."""
    losses: Mapping[str, tuple[LossPoint, ...]]
    """By arm, from rank 0."""
    ranks: Mapping[str, tuple[RankReceipt, ...]]
    """The trainer's own receipts, by arm."""
    measurements: Measurements | None
    """Measured again from the files; None where training did not run."""
    development: tuple[DevelopmentRun, ...]
    environments: Mapping[str, Mapping[str, str]]
    """Installed distributions, by host."""
    limits: tuple[str, ...]
    """Everything that is to be said under limits, once each."""
    files: Mapping[str, str]
    """SHA-256 of every file that was read, by path in the archive."""

    @property
    def models(self) -> tuple[str, ...]:
        """The reference, the parent where there is one, then the arms in running order."""
        return self.plan.models

    @property
    def attestations(self) -> dict[str, Attestation]:
        """What was recorded of signature and time stamp, by what was committed."""
        committed, selected = self.receipt(CommitReceipt), self.receipt(SelectReceipt)
        told = {PLAN_COMMITTED: committed, SELECTION_COMMITTED: selected}
        return {what: one.attestation for what, one in told.items() if one and one.attestation}

    def receipt(self, kind: type[R]) -> R | None:
        """The receipt of that type, or None when its stage did not run."""
        for receipt in self.receipts.values():
            if isinstance(receipt, kind):
                return receipt
        return None
