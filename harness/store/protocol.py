"""The seam `Store`: content-addressed objects, written once (folder | S3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from harness.plan.kinds import CountOrZero, Sha256
from harness.strict import Model


class Artifact(Model):
    """One stored object. `name` is what it is called where it is used."""

    name: str
    sha256: Sha256
    bytes: CountOrZero
    version: str | None = None
    """The store's own id of these bytes (an S3 VersionId); absent where it keeps none."""


class Store(Protocol):
    """Objects are named by the hash of their bytes. Writing an object that is there is no error."""

    @property
    def kind(self) -> str:
        """'folder' or 's3'."""

    def address(self) -> str:
        """JSON text that `harness.onhost.stage` and `.readback` understand; no secret in it."""

    def put(self, path: Path, *, name: str) -> Artifact:
        """Store a file. The object appears whole or not at all."""

    def put_bytes(self, data: bytes, *, name: str) -> Artifact:
        """Store bytes."""

    def fetch(self, artifact: Artifact, path: Path) -> None:
        """Write an object to a file, hash checked. Raises Leaked when it is missing or differs."""

    def read(self, artifact: Artifact, *, limit: int = 1 << 28) -> bytes:
        """An object's bytes, hash checked."""

    def has(self, sha256: str) -> bool:
        """Whether an object of that name is there (its bytes are not read)."""

    def list(self) -> Iterator[tuple[str, int]]:
        """(hash, size) of every object."""

    def locate(self, sha256: str) -> str:
        """Where a person finds the object: a path or s3:// address."""
