"""prepared.json: the commitment to what will be read and what will be pushed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.plan.kinds import CountOrZero, Sha256
from harness.store.protocol import Artifact
from harness.strict import Model


class SeedModel(Model):
    """The seed model's files. `parameter_root` is null until the weights were seen."""

    files: tuple[Artifact, ...]
    parameter_root: Sha256 | None = None
    parameters: CountOrZero | None = None


class TargetCounts(Model):
    """Response tokens that an arm trains on, over its whole schedule."""

    documents: CountOrZero
    tokens: CountOrZero
    targets: CountOrZero
    weighted_targets: float


class Prepared(Model):
    """What `harness prepare` fixed (prepared.json)."""

    schema_: Literal["harness/prepared/1"] = Field(alias="schema")
    plan: str
    plan_hash: Sha256
    identity: Sha256
    """Hash over the sorted listing of every prepared file."""
    files: tuple[Artifact, ...]
    source_sha256: Sha256
    """What is pushed: hash over the listings of the trainer tree and the on-host helper."""
    trainer_sha256: Sha256
    requirements_sha256: Sha256 | None = None
    tokenizer_sha256: Sha256
    seed_model: SeedModel
    parent_model: SeedModel | None = None
    """The candidate of an earlier study that arms start from; absent where the plan names none."""
    arms: dict[str, TargetCounts]
    roles: dict[str, CountOrZero]
    """Documents or cases in each role."""
    damaged: CountOrZero
    """Documents whose target the damaged corpus corrupts."""
    longest_tokens: CountOrZero
    end_tokens: tuple[CountOrZero, ...]
    """Ids that end an answer."""
    held_out_wordings: tuple[CountOrZero, ...] = ()
    replay_source: str | None = None
    distinct_conversations: CountOrZero = 0
    exposure: dict[str, tuple[str, ...]]
    """First 16 hex digits of every case id, by role."""
    notes: tuple[str, ...] = ()
    """Re-used cases and replications, printed under limits."""
