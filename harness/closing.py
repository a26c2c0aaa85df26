"""closing.json: what happened after the archive was sealed. With the archive it is the evidence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.plan.kinds import CountOrZero, Name, Sha256
from harness.results import Resources
from harness.store.protocol import Artifact
from harness.strict import Model


class SealedArchive(Model):
    """The archive that this record closes."""

    sha256: Sha256
    """Of the uncompressed tar: the archive's identity."""
    bytes: CountOrZero
    """Of the uncompressed tar."""
    locator: str
    """Where a person finds the stored envelope."""
    envelope: Artifact | None = None
    """The stored gzip file."""


class Preservation(Model):
    """Every expected object fetched again and hashed again by another process."""

    objects: CountOrZero
    bytes: CountOrZero
    reader_pid: CountOrZero
    reader: str
    """Where the reader ran."""
    lost: tuple[str, ...] = ()
    """Objects recorded as lost, a sentence each."""
    not_kept: tuple[str, ...] | None = None
    """Candidates whose weights were given up, with their parameter roots, a sentence each; absent:
    none were."""
    retention: str | None = None
    """When the store's bytes are removed again, or that they stay and what that costs a month."""


class Release(Model):
    """Why hosts might be ended."""

    basis: Literal["preserved", "abandoned"]
    why: str = ""
    """The words given to --abandon."""


class ClosingRecord(Model):
    """Preservation, release, teardown and cost of the run that filled the archive."""

    schema_: Literal["harness/closing/1"] = Field(alias="schema")
    plan: Name
    run: str
    archive: SealedArchive
    preservation: Preservation | None = None
    """Null when the run was abandoned before its readback."""
    release: Release
    ended: tuple[str, ...]
    """One sentence a host, from terminate."""
    residue: tuple[str, ...]
    """What was still there after teardown, by name."""
    resources: Resources
    incomplete: str | None = None
    """Why the study ended before all of it was measured; absent: it did not."""
    stages: dict[str, float] = Field(default_factory=dict)
    """Seconds of the stages after the archive was sealed (seal, preserve, release, terminate)."""
