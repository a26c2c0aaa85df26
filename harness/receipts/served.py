"""What the serving stage observed: every phase, its replicas and every request's fate."""

from __future__ import annotations

from typing import Literal

from harness.plan.kinds import CountOrZero, NotNegative, Sha256
from harness.receipts.base import Incomplete, RankReceipt, Receipt
from harness.store.protocol import Artifact
from harness.strict import Model

AttemptOutcome = Literal[
    "answered", "refused", "reset", "timed-out", "truncated", "wrong-identity", "overloaded",
    "status", "malformed", "interrupted",
]  # fmt: skip
"""refused: no connection; reset: closed before an answer began; truncated: shorter than it said;
overloaded: 429 or 503; status: another HTTP status; interrupted: the client itself was ended."""


class RequestAttempt(Model):
    """One attempt of a request at one replica."""

    replica: str
    outcome: AttemptOutcome
    seconds: NotNegative | None = None
    """Null where the client was ended meanwhile."""


class Fate(Model):
    """What became of one request."""

    request: str
    """Its identity, the same in all its attempts."""
    case: str
    attempts: tuple[RequestAttempt, ...]
    latency_s: NotNegative | None = None
    """From the first send (open loop: from when it was due) to the answer, failed attempts
    included; null without an answer."""
    tokens: CountOrZero = 0
    tokens_sha256: Sha256 | None = None
    """Hash of the answer's token ids; null without an answer."""
    cached: bool = False
    executions: CountOrZero = 0
    """How often replicas began to generate it; more than one is a duplicate."""
    completed: CountOrZero = 0
    """How often a replica generated it to its end."""


class ReplicaRecord(Model):
    """One replica in one phase."""

    host: str
    ready: bool
    """Its weights were verified and it said that it is ready."""
    fault: str
    exit_code: int | None = None
    reason: str | None = None
    """Why it was ended, or why it never became ready."""
    rank: RankReceipt | None = None
    """Its receipt; null for one that was killed."""
    served: Artifact | None = None
    """served-0.jsonl: what it did for each request."""
    log: Artifact | None = None


class PhaseRecord(Model):
    """One phase, run once."""

    name: str
    outcome: Literal["passed", "failed", "cut"]
    """failed: it could not be carried out, or (closed loop) a request has no answer. cut: it had to
    leave before its end; the record holds what was sent and answered by then."""
    why: str
    started_utc: str
    ended_utc: str
    sessions: CountOrZero
    """How often the client was started; more than once: it was ended and went on."""
    replicas: tuple[ReplicaRecord, ...]
    fates: tuple[Fate, ...]
    events: Artifact | None = None
    """events.jsonl of the client."""
    order: Artifact
    """order.json: what the client was told to do, prompts included."""
    cut: Incomplete | None = None
    """Why it had to leave."""
    lost: tuple[str, ...] = ()
    """Files that a host which is gone for good held, a sentence each."""
    uncounted: bool = False
    """The client's record could not be had, so nobody knows which requests were answered."""


class ServeReceipt(Receipt):
    """Serving phases in the declared order; without any the stage says 'not run'."""

    ran: bool
    why: str
    candidate: str | None = None
    parameter_root: Sha256 | None = None
    phases: tuple[PhaseRecord, ...] = ()
