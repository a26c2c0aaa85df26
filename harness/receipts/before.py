"""Receipts of the stages before training: prepare to probe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.fleet.protocol import Deadline
from harness.hosts.protocol import HostFacts
from harness.plan.kinds import CountOrZero, Money, Sha256
from harness.prepared import TargetCounts
from harness.receipts.base import Attestation, Line, Receipt
from harness.store.protocol import Artifact
from harness.strict import Model


class PrepareReceipt(Receipt):
    """Prepared inputs are in the store; prepared.json stands beside the plan."""

    identity: Sha256
    prepared_sha256: Sha256
    source_sha256: Sha256
    prepared_files: tuple[Artifact, ...]
    seed_files: tuple[Artifact, ...]
    parent_files: tuple[Artifact, ...] | None = None
    """The parent's weights with the seed model's configuration and tokenizer."""
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
    attestation: Attestation | None = None
    """Signature and time stamp, where the user asked for them."""


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
    """Of model and inputs; 0: all of it was there already."""
    seconds: float | None = None
    """Until it held all of this, by the run that completed it: building and comparing included."""


class PushReceipt(Receipt):
    """Trainer, helper, environment, model and inputs are on every host."""

    hosts: tuple[PushedHost, ...]
    stored: tuple[Artifact, ...] = ()
    """What was brought into the bucket now, because it was prepared before there was one."""
    lines: tuple[Line, ...] = ()
    """Read-ahead of every host's disk while files are staged."""


class Allowance(Model):
    """Counters of one interface's network allowances, or why there are none."""

    host: str
    interface: str
    counters: dict[str, CountOrZero]
    """Packets that were queued or dropped because an allowance was exceeded, since boot."""
    why: str = ""


class PreflightReceipt(Receipt):
    """Every host was looked at before the first arm."""

    device: Literal["cpu", "cuda"]
    lines: tuple[Line, ...]
    allowances: tuple[Allowance, ...] = ()


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
