"""A store in a folder: `Store` over the helper's own object files."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from harness.errors import HarnessError, Leaked, Waiting
from harness.onhost.command import Fault
from harness.onhost.objects import FolderObjects, ObjectFault, copy_checked
from harness.store.protocol import Artifact


class FolderStore:
    """Objects in `root/objects/`, created when first written."""

    def __init__(self, root: Path) -> None:
        self._objects = FolderObjects(root.resolve())

    @property
    def kind(self) -> str:
        """'folder'."""
        return "folder"

    def address(self) -> str:
        """JSON text for `harness.onhost.stage` and `.readback`."""
        return json.dumps({"kind": "folder", "path": str(self._objects.root)})

    def put(self, path: Path, *, name: str) -> Artifact:
        """Store a file. Raises Waiting (no room, or it changed), Leaked (a broken object there)."""
        try:
            sha256, size = self._objects.put_file(path)
        except Fault as fault:
            raise _error(fault, name) from None
        return Artifact(name=name, sha256=sha256, bytes=size)

    def put_bytes(self, data: bytes, *, name: str) -> Artifact:
        """Store bytes. Raises as `put`."""
        try:
            sha256, size = self._objects.put_bytes(data)
        except Fault as fault:
            raise _error(fault, name) from None
        return Artifact(name=name, sha256=sha256, bytes=size)

    def fetch(self, artifact: Artifact, path: Path) -> None:
        """Write an object to a file, hash checked, atomically. Raises Leaked, Waiting (no room)."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        try:
            self._objects.fetch(artifact.sha256, artifact.bytes, part)
            os.replace(part, path)
        except Fault as fault:
            raise _error(fault, artifact.name) from None
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
            chunks = self._objects.chunks(artifact.sha256)
            copy_checked(chunks, artifact.sha256, artifact.bytes, pieces.append)
        except Fault as fault:
            raise _error(fault, artifact.name) from None
        return b"".join(pieces)

    def has(self, sha256: str) -> bool:
        """Whether an object of that name is there (its bytes are not read)."""
        return self._objects.path_of(sha256).is_file()

    def list(self) -> Iterator[tuple[str, int]]:
        """(hash, size) of every object."""
        return self._objects.list()

    def locate(self, sha256: str) -> str:
        """The object's path."""
        return str(self._objects.path_of(sha256))


def _error(fault: Fault, name: str) -> HarnessError:
    if isinstance(fault, ObjectFault) and fault.kind in ("missing", "truncated", "corrupt"):
        return Leaked(str(fault), where=name)
    return Waiting(str(fault), where=name)
