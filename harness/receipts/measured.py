"""Receipts of the stages that train, score and decide."""

from __future__ import annotations

from typing import Literal

from harness.plan.kinds import CountOrZero, Sha256
from harness.receipts.base import Attempt, Attestation, Line, RankReceipt, Receipt, Unfinished
from harness.store.protocol import Artifact
from harness.strict import Model


class Candidate(Model):
    """An arm's predetermined final weights."""

    arm: str
    parameter_root: Sha256
    files: tuple[Artifact, ...]


class ArmRecord(Model):
    """One arm: its attempts, its ranks, its candidate."""

    arm: str
    attempts: tuple[Attempt, ...]
    ranks: tuple[RankReceipt, ...]
    losses: tuple[Artifact, ...]
    """losses-R.jsonl of every rank, in the store."""
    candidate: Candidate
    lines: tuple[Line, ...] = ()
    """Read-ahead of rank 0's disk while the candidate was stored."""


class TrainReceipt(Receipt):
    """All arms, in the order they ran."""

    arms: tuple[ArmRecord, ...]
    unfinished: tuple[Unfinished, ...] | None = None
    """The arm that had begun when the study had to end."""


class RecheckReceipt(Receipt):
    """What preflight checked between hosts, checked again after the arms."""

    lines: tuple[Line, ...]


class SelectReceipt(Receipt):
    """The selection commit names reference, every candidate and the one to serve."""

    selection_sha256: Sha256
    commit: str
    branch: str
    candidates: dict[str, Sha256]
    """Parameter roots by name, 'reference' among them."""
    attestation: Attestation | None = None
    """Signature and time stamp, where the user asked for them."""


class ModelScores(Model):
    """One model's evaluation."""

    name: str
    parameter_root: Sha256
    attempts: tuple[Attempt, ...]
    rank: RankReceipt
    answers: tuple[Artifact, ...]
    """answers-ROLE.jsonl."""
    retention: tuple[Artifact, ...]
    """retention-NAME.jsonl."""
    scores: Artifact
    """Scored cases: {id, role, family, wording, correct, valid_json, reason} a line."""


class Distance(Model):
    """Two candidates' parameters compared."""

    candidate: str
    reference: str
    relative_l2: float
    max_abs: float


class EvaluateReceipt(Receipt):
    """Reference and candidates were scored behind the selection commit."""

    models: tuple[ModelScores, ...]
    distances: tuple[Distance, ...]
    floor: ModelScores | None = None
    """The candidate of the plan's flip floor, in batches of the other size, without probes."""
    unfinished: tuple[Unfinished, ...] | None = None
    """The evaluation that had begun when the study had to end."""


class Agreement(Model):
    """One kind of independent check."""

    check: str
    count: CountOrZero


class ValidateReceipt(Receipt):
    """The second code path agrees with the first."""

    checks: tuple[Agreement, ...]
    disagreements: tuple[str, ...]


class Decided(Model):
    """One decision with everything that it was decided from."""

    name: str
    claim: str
    statistic: str
    candidate: str
    reference: str | None = None
    value: float | None = None
    """The statistic's point value; null when an input was missing or not finite."""
    bound: Literal["lower", "upper", "at-least", "at-most"]
    bound_value: float | None = None
    margin: float
    passed: bool
    exploratory: bool
    detail: str
    """One line: counts, standard error, z label, second interval."""
    source: str
    """Which receipts the numbers came from."""


class DecideReceipt(Receipt):
    """All declared decisions."""

    decisions: tuple[Decided, ...]
    results: Artifact
    """results.json as stored."""
