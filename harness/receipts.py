"""Receipts: what each stage observed. One model a stage, and the pieces they share.

A receipt carries the hashes of what it read (`inputs`) and wrote; the pipeline runs a stage again
only when those differ.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.fleet.protocol import Deadline
from harness.hosts.protocol import HostFacts
from harness.plan.kinds import CountOrZero, Money, Sha256
from harness.prepared import TargetCounts
from harness.store.protocol import Artifact
from harness.strict import Model

StageName = Literal[
    "prepare", "commit", "provision", "push", "preflight", "probe", "train", "select", "evaluate",
    "serve", "validate", "decide", "seal", "preserve", "release", "terminate", "report",
]  # fmt: skip


class Receipt(Model):
    """What every receipt holds."""

    schema_: Literal["harness/receipt/1"] = Field(default="harness/receipt/1", alias="schema")
    stage: StageName
    run: str
    plan_hash: Sha256
    started_utc: str
    finished_utc: str
    seconds: float
    """Monotonic duration of the attempt that wrote this receipt."""
    inputs: dict[str, Sha256]
    """Hashes of what the stage read, by name."""
    notes: tuple[str, ...] = ()
    """Sentences that the report prints under limits."""


class Attempt(Model):
    """One start of an arm, an evaluation or another job, also a failed one."""

    number: CountOrZero
    outcome: Literal["done", "failed", "lost"]
    started_utc: str
    ended_utc: str
    seconds: float
    """Longest rank's job, from start to end as the supervisor saw it."""
    exit_codes: dict[str, int | None]
    """By host name."""
    reason: str = ""
    """Why it failed, with the last words of the log."""
    logs: tuple[Artifact, ...] = ()


class Timers(Model):
    """Seconds; docs/contract.md says what each one leaves out."""

    process: float
    allocated: float
    load: float | None = None
    update_sum: float | None = None
    update_median: float | None = None
    active: float | None = None
    active_plus_checkpoint: float | None = None
    loop: float | None = None


class Traffic(Model):
    """Whole-host counters of one interface over a process, management traffic included."""

    interface: str
    sent_bytes: CountOrZero
    received_bytes: CountOrZero


class RankReceipt(Model):
    """receipt-R.json of a trainer (docs/contract.md)."""

    contract: Literal["harness/contract/1"]
    task: str
    rank: CountOrZero
    workers: CountOrZero
    recipe_sha256: Sha256
    source_sha256: Sha256
    inputs: dict[str, Sha256]
    model_root: Sha256 | None = None
    device: Literal["cpu", "cuda"]
    device_name: str
    versions: dict[str, str]
    threads: CountOrZero
    peak_memory_bytes: CountOrZero
    peak_memory_of: Literal["process", "device"]
    traffic: Traffic
    timers: Timers
    body: dict[str, object]
    """By task; see the typed readers in harness/rank_bodies.py."""


class PrepareReceipt(Receipt):
    """Prepared inputs are in the store; prepared.json stands beside the plan."""

    identity: Sha256
    prepared_sha256: Sha256
    source_sha256: Sha256
    prepared_files: tuple[Artifact, ...]
    seed_files: tuple[Artifact, ...]
    arms: dict[str, TargetCounts] = Field(default_factory=dict)
    """Target counts of each arm over its schedule, weighted and not."""


class CommitReceipt(Receipt):
    """Plan and prepared.json are committed."""

    repository: str
    """'found' or 'made' (in the run folder, where plan.json is in none)."""
    branch: str
    commit: str
    base: str | None = None
    """The commit it stands on; null for a first commit."""
    paths: tuple[str, ...]


class ProvisionReceipt(Receipt):
    """The fleet stands, with both deadlines read back."""

    fleet_kind: str
    fleet: str
    hosts: tuple[HostFacts, ...]
    deadlines: tuple[Deadline, ...]
    worst_case_usd: Money
    ceiling_usd: Money


class PushedHost(Model):
    """What one host now holds."""

    host: str
    source_sha256: Sha256
    environment: str
    """'as-found', or the requirement file's hash."""
    environment_path: str
    """Folder on the host; empty as found."""
    environment_manifest: dict[str, str]
    """Installed distributions and versions."""
    identity: Sha256
    seed_files: tuple[Artifact, ...]
    moved_bytes: CountOrZero


class PushReceipt(Receipt):
    """Trainer, helper, environment, model and inputs are on every host."""

    hosts: tuple[PushedHost, ...]


class Line(Model):
    """One preflight line."""

    host: str
    check: str
    observed: str
    required: str
    ok: bool


class PreflightReceipt(Receipt):
    """Every host was looked at before the first arm."""

    device: Literal["cpu", "cuda"]
    lines: tuple[Line, ...]


class Trial(Model):
    """One probe trial, also one that failed."""

    arm: str
    microbatch: CountOrZero
    ok: bool
    seconds_per_update: float | None = None
    tokens_per_s: float | None = None
    peak_memory_bytes: CountOrZero | None = None
    why: str = ""


class ProbeReceipt(Receipt):
    """Trials, and what they froze."""

    trials: tuple[Trial, ...]
    microbatch: dict[str, CountOrZero]
    """By arm."""


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


class TrainReceipt(Receipt):
    """All arms, in the order they ran."""

    arms: tuple[ArmRecord, ...]


class SelectReceipt(Receipt):
    """The selection commit names reference, every candidate and the one to serve."""

    selection_sha256: Sha256
    commit: str
    branch: str
    candidates: dict[str, Sha256]
    """Parameter roots by name, 'reference' among them."""


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


class ServeReceipt(Receipt):
    """Serving phases; without any the stage says 'not run'."""

    ran: bool
    why: str


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


class SealReceipt(Receipt):
    """The archive."""

    archive_sha256: Sha256
    """Of the uncompressed tar: the archive's identity."""
    archive_bytes: CountOrZero
    envelope: Artifact
    """The gzip file in the store."""
    index_sha256: Sha256
    members: CountOrZero


class Readback(Model):
    """One object read back by another process."""

    name: str
    sha256: Sha256
    bytes: CountOrZero
    ok: bool
    fault: str | None = None


class PreserveReceipt(Receipt):
    """Every expected artifact was read back whole, or is recorded as lost."""

    store: str
    reader_pid: CountOrZero
    reader: str
    """Where the reader ran."""
    objects: tuple[Readback, ...]
    bytes: CountOrZero
    lost: tuple[str, ...] = ()


class ReleaseReceipt(Receipt):
    """The gate: whether hosts may be ended."""

    released: bool
    basis: Literal["preserved", "abandoned"]
    why: str


class TerminateReceipt(Receipt):
    """Hosts are ended and nothing is left."""

    ended: tuple[str, ...]
    residue: tuple[str, ...]
    resources: Artifact
    """resources.json as stored."""


class ReportReceipt(Receipt):
    """The report was written from archive and closing record."""

    report_json: Artifact
    page: Artifact


RECEIPTS: dict[StageName, type[Receipt]] = {
    "prepare": PrepareReceipt,
    "commit": CommitReceipt,
    "provision": ProvisionReceipt,
    "push": PushReceipt,
    "preflight": PreflightReceipt,
    "probe": ProbeReceipt,
    "train": TrainReceipt,
    "select": SelectReceipt,
    "evaluate": EvaluateReceipt,
    "serve": ServeReceipt,
    "validate": ValidateReceipt,
    "decide": DecideReceipt,
    "seal": SealReceipt,
    "preserve": PreserveReceipt,
    "release": ReleaseReceipt,
    "terminate": TerminateReceipt,
    "report": ReportReceipt,
}
"""Every stage in order, with the model of its receipt."""
