"""A store over the helper's own objects: the same code stores and reads on both sides."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from harness.errors import HarnessError, Leaked, Waiting
from harness.onhost.command import Fault
from harness.onhost.objects import ObjectFault, Objects, Stored, copy_checked
from harness.store.protocol import Artifact


class ObjectStore:
    """What folder and S3 share: artifacts in, artifacts out, faults as errors."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def put(self, path: Path, *, name: str) -> Artifact:
        """Store a file. Raises Waiting (no room, it changed, no answer), Leaked (a broken one)."""
        try:
            return _artifact(name, self.objects.put_file(path))
        except Fault as fault:
            raise as_error(fault, name) from None

    def put_bytes(self, data: bytes, *, name: str) -> Artifact:
        """Store bytes. Raises as `put`."""
        try:
            return _artifact(name, self.objects.put_bytes(data))
        except Fault as fault:
            raise as_error(fault, name) from None

    def fetch(self, artifact: Artifact, path: Path) -> None:
        """Write an object to a file, hash checked, atomically. Raises Leaked, Waiting."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        try:
            self.objects.fetch(artifact.sha256, artifact.bytes, part, artifact.version or "")
            os.replace(part, path)
        except Fault as fault:
            raise as_error(fault, artifact.name) from None
        finally:
            part.unlink(missing_ok=True)

    def read(self, artifact: Artifact, *, limit: int = 1 << 28) -> bytes:
        """An object's bytes, hash checked. Raises Leaked, Waiting when it is over `limit` bytes."""
        if artifact.bytes > limit:
            raise Waiting(
                f"the object has {artifact.bytes} bytes, over the limit of {limit}",
                where=artifact.name,
            )
        pieces: list[bytes] = []
        try:
            chunks = self.objects.chunks(artifact.sha256, artifact.version or "")
            copy_checked(chunks, artifact.sha256, artifact.bytes, pieces.append)
        except Fault as fault:
            raise as_error(fault, artifact.name) from None
        return b"".join(pieces)

    def list(self) -> Iterator[tuple[str, int]]:
        """(hash, size) of every object. Raises Waiting."""
        try:
            yield from self.objects.list()
        except Fault as fault:
            raise as_error(fault, "the store") from None


def as_error(fault: Fault, name: str) -> HarnessError:
    """An object that is not whole is Leaked; all else can be mended and tried again."""
    lost = ("missing", "truncated", "corrupt", "replaced")
    if isinstance(fault, ObjectFault) and fault.kind in lost:
        return Leaked(str(fault), where=name)
    return Waiting(str(fault), where=name)


def _artifact(name: str, stored: Stored) -> Artifact:
    return Artifact(
        name=name, sha256=stored.sha256, bytes=stored.bytes, version=stored.version or None
    )
