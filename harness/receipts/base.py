"""Pieces that receipts share: what each one holds, attempts, timers, checks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.plan.kinds import CountOrZero, Sha256
from harness.store.protocol import Artifact
from harness.strict import Model

StageName = Literal[
    "prepare", "commit", "provision", "push", "preflight", "probe", "train", "recheck", "select",
    "evaluate", "serve", "validate", "decide", "seal", "preserve", "release", "terminate", "report",
]  # fmt: skip


Cause = Literal["deadline", "lost-host"]


class Incomplete(Model):
    """Why a study ended before all of it was measured."""

    because: Cause
    why: str
    """A clause: what happened, when."""


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
    incomplete: Incomplete | None = None
    """Set by the stage that had to end early; only preserving follows it."""


class Line(Model):
    """One look at a host or fleet: what was seen, what is needed, whether it holds."""

    host: str
    check: str
    observed: str
    required: str
    ok: bool


class Attempt(Model):
    """One start of an arm, an evaluation or another job, also a failed one."""

    number: CountOrZero
    outcome: Literal["done", "failed", "lost", "stopped"]
    """stopped: ended by this side, because only preserving still fitted before the deadline."""
    started_utc: str
    ended_utc: str
    seconds: float
    """Longest rank's job, from start to end as the supervisor saw it."""
    exit_codes: dict[str, int | None]
    """By host name."""
    reason: str = ""
    """Why it failed, with the last words of the log."""
    logs: tuple[Artifact, ...] = ()
    lines: tuple[Line, ...] = ()
    """What was looked at on its hosts just before it began and after it ended."""


class Attestation(Model):
    """The statement of one commitment, who signed it and when an authority saw it."""

    statement: Artifact
    signature: Artifact | None = None
    """A DSSE envelope."""
    signer: Artifact | None = None
    """The public key, as an OpenSSH line."""
    key: str | None = None
    """Its fingerprint, as `ssh-keygen -l` prints it."""
    stamp: Artifact | None = None
    """An RFC 3161 reply."""
    authority: Artifact | None = None
    """The certificates (PEM) that the reply leads to."""
    authority_url: str | None = None
    stamped_utc: str | None = None
    """The time in the stamp."""
    asked_utc: str | None = None
    """The operator's clock when the stamp came."""
    missing: str | None = None
    """Why there is no stamp although one was asked for."""


class Unfinished(Model):
    """Work that had begun when the study had to end, and what of it was kept."""

    name: str
    """The arm; else 'evaluate NAME' or the like."""
    attempts: tuple[Attempt, ...]
    losses: tuple[Artifact, ...] = ()
    """Whole lines of losses-R.jsonl up to the stop, of the ranks that could be asked."""
    lost: tuple[str, ...] = ()
    """Files that a host which is gone for good held, a sentence each, with the proof."""
    missing: tuple[str, ...] = ()
    """Files that could not be had in time, a sentence each."""


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
