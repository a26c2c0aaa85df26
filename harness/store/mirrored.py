"""The store of a plan that names S3: a folder here first, and the bucket as soon as there is one.

The bucket belongs to the stack, and inputs are prepared before the stack stands; the operator's
side also needs what it wrote (answers, receipts) more often than it should be fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.errors import Refused
from harness.store.folder import FolderStore
from harness.store.protocol import Artifact, Store


class MirroredStore:
    """Writes to the folder and, once it is known, to the bucket; reads from where it is near."""

    def __init__(self, local: FolderStore, bucket: Callable[[], Store | None]) -> None:
        self.local = local
        self._bucket = bucket
        self._opened: Store | None = None

    @property
    def kind(self) -> str:
        """'s3'."""
        return "s3"

    def remote(self) -> Store | None:
        """The bucket's store; null while no fleet stands that has one. Raises Waiting."""
        if self._opened is None:
            self._opened = self._bucket()
        return self._opened

    def required(self) -> Store:
        """The bucket's store. Raises Refused while there is none."""
        opened = self.remote()
        if opened is None:
            raise Refused("there is no bucket yet: no fleet of this run stands", where="the store")
        return opened

    def address(self) -> str:
        """The bucket's address, for hosts. Raises Refused while there is none."""
        return self.required().address()

    def put(self, path: Path, *, name: str) -> Artifact:
        """Store a file here, and in the bucket once there is one. Raises as both do."""
        artifact = self.local.put(path, name=name)
        opened = self.remote()
        return artifact if opened is None else opened.put(path, name=name)

    def put_bytes(self, data: bytes, *, name: str) -> Artifact:
        """Store bytes. Raises as `put`."""
        artifact = self.local.put_bytes(data, name=name)
        opened = self.remote()
        return artifact if opened is None else opened.put_bytes(data, name=name)

    def mirror(self, artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
        """Bring what was stored here before the bucket was known into it, written once.

        Returned with the versions that the bucket gave. Raises Refused, Waiting, Leaked.
        """
        opened = self.required()
        return tuple(
            each
            if each.version
            else opened.put(Path(self.local.locate(each.sha256)), name=each.name)
            for each in artifacts
        )

    def fetch(self, artifact: Artifact, path: Path) -> None:
        """Write an object to a file, hash checked, atomically. Raises Leaked, Waiting."""
        self._holder(artifact.sha256).fetch(artifact, path)

    def read(self, artifact: Artifact, *, limit: int = 1 << 28) -> bytes:
        """An object's bytes, hash checked. Raises Leaked, Waiting."""
        return self._holder(artifact.sha256).read(artifact, limit=limit)

    def has(self, sha256: str) -> bool:
        """Whether an object of that name is here or there (its bytes are not read)."""
        opened = self.remote()
        return self.local.has(sha256) or (opened is not None and opened.has(sha256))

    def list(self) -> Iterator[tuple[str, int]]:
        """(hash, size) of every object in the bucket; of the folder while there is none."""
        return (self.remote() or self.local).list()

    def locate(self, sha256: str) -> str:
        """The object's place in the bucket; in the folder while there is none."""
        return (self.remote() or self.local).locate(sha256)

    def _holder(self, sha256: str) -> Store:
        opened = self.remote()
        return self.local if opened is None or self.local.has(sha256) else opened
