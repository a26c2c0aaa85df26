"""Objects named by the SHA-256 of their bytes: what a store must do, and the one in a folder.

`ROOT/objects/ab/abcdef...` appear whole or not at all and are never replaced; what is still being
written is in `ROOT/incoming/`, locked by its writer.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Protocol

from harness.onhost.command import Fault
from trainer import contract

CHUNK_BYTES = 4 * 1024 * 1024
_HEX = frozenset("0123456789abcdef")

Kind = Literal["missing", "truncated", "corrupt", "replaced", "full", "changed"]


class Stored(NamedTuple):
    """A stored object. `version` is the store's own id of these bytes; '' where it keeps none."""

    sha256: str
    bytes: int
    version: str = ""


class ObjectFault(Fault):
    """What is wrong with an object, or why it could not be stored; `kind` tells them apart."""

    def __init__(self, kind: Kind, sentence: str) -> None:
        super().__init__(sentence, exit_code=4 if kind == "full" else 5)
        self.kind: Kind = kind


class Objects(Protocol):
    """What stage and readback need of a store. With a `version` exactly that one is read."""

    def put_file(self, path: Path) -> Stored:
        """Store a file. Raises ObjectFault, Fault."""

    def put_bytes(self, data: bytes) -> Stored:
        """Store bytes. Raises as `put_file`."""

    def chunks(self, sha256: str, version: str = "") -> Iterator[bytes]:
        """An object's bytes in order. Raises ObjectFault (missing), Fault."""

    def version_now(self, sha256: str) -> str:
        """The version that the name stands for now; '' where there are none."""

    def readers(self, count: int) -> None:
        """Told before so many objects are read at once."""

    def list(self) -> Iterator[tuple[str, int]]:
        """(hash, size) of every object, in order of their hashes."""

    def fetch(self, sha256: str, size: int, target: Path, version: str = "") -> None:
        """Write an object to a new file, checked while it is written. Raises ObjectFault."""


def open_objects(address: str) -> Objects:
    """The store behind an address (JSON text of `Store.address`). Raises Fault."""
    given = contract.parse(address, where="the store's address")
    if isinstance(given, dict) and given.get("kind") == "folder" and "path" in given:
        return FolderObjects(Path(given["path"]))
    if isinstance(given, dict) and given.get("kind") == "s3":
        from harness.onhost.s3objects import S3Objects  # boto3 only where it is needed
        from harness.onhost.s3place import S3Place

        return S3Objects(S3Place.parse(given))
    kind = given.get("kind") if isinstance(given, dict) else given
    raise Fault(f"this helper knows no store of the kind {kind!r}.")


class FolderObjects:
    """Objects in a folder. Several processes may use it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path_of(self, sha256: str) -> Path:
        """Where the object of that hash is or would be. Raises Fault when it is not a hash."""
        if len(sha256) != 64 or not _HEX.issuperset(sha256):
            raise Fault(f"'{sha256[:80]}' is not a SHA-256 in lower-case hex.")
        return self.root / "objects" / sha256[:2] / sha256

    def put_file(self, path: Path) -> Stored:
        """Store a file.

        Raises ObjectFault: changed while it was read, full, or an object of that name is there
        with another size.
        """
        sha256, size = contract.hash_file(path)
        if not self._there(sha256, size):
            with open(path, "rb") as source:
                self._store(sha256, size, _pieces(source), str(path))
        return Stored(sha256, size)

    def put_bytes(self, data: bytes) -> Stored:
        """Store bytes. Raises ObjectFault as `put_file`."""
        sha256 = contract.sha256(data)
        if not self._there(sha256, len(data)):
            self._store(sha256, len(data), iter([data]), "bytes in memory")
        return Stored(sha256, len(data))

    def version_now(self, sha256: str) -> str:
        """A folder keeps no versions."""
        return ""

    def readers(self, count: int) -> None:
        """Nothing to share out."""

    def chunks(self, sha256: str, version: str = "") -> Iterator[bytes]:
        """An object's bytes in order. Raises ObjectFault (missing)."""
        try:
            with open(self.path_of(sha256), "rb") as handle:
                yield from _pieces(handle)
        except FileNotFoundError:
            raise ObjectFault("missing", f"object {sha256} is not in {self.root}.") from None

    def fetch(self, sha256: str, size: int, target: Path, version: str = "") -> None:
        """Write an object to a new file, checked while it is written. Raises ObjectFault."""
        with open(target, "xb") as out:
            try:
                copy_checked(self.chunks(sha256), sha256, size, out.write)
                out.flush()
                os.fsync(out.fileno())
            except OSError as error:
                raise no_room(error, target) from None

    def list(self) -> Iterator[tuple[str, int]]:
        """(hash, size) of every object, in order of their hashes."""
        base = self.root / "objects"
        for folder in sorted(base.iterdir()) if base.is_dir() else ():
            for path in sorted(folder.iterdir()):
                yield path.name, path.stat().st_size

    def _there(self, sha256: str, size: int) -> bool:
        try:
            found = self.path_of(sha256).stat().st_size
        except FileNotFoundError:
            return False
        if found != size:
            raise ObjectFault(
                "truncated", f"object {sha256} in {self.root} has {found} bytes, not {size}."
            )
        return True

    def _store(self, sha256: str, size: int, pieces: Iterator[bytes], source: str) -> None:
        target = self.path_of(sha256)
        incoming = self.root / "incoming"
        try:
            for folder in (incoming, target.parent):
                if not folder.is_dir():
                    folder.mkdir(parents=True, exist_ok=True)
                    contract.sync_folder(folder.parent)
            _sweep(incoming)
            with _temporary(incoming) as (path, out):
                copy_checked(pieces, sha256, size, out.write, source=source)
                out.flush()
                os.fchmod(out.fileno(), 0o444)
                os.fsync(out.fileno())
                try:
                    os.link(path, target)
                except FileExistsError:
                    self._there(sha256, size)
            contract.sync_folder(target.parent)
        except OSError as error:
            raise no_room(error, self.root) from None


def copy_checked(
    pieces: Iterator[bytes],
    sha256: str,
    size: int,
    write: Callable[[bytes], object],
    *,
    source: str = "",
) -> None:
    """Hand all pieces to `write`; then raise ObjectFault unless they are what the name says.

    With a `source` (a file being stored) the fault is that it changed; else it is the object's.
    """
    digest, seen = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        seen += len(piece)
        write(piece)
    if seen == size and digest.hexdigest() == sha256:
        return
    if source:
        raise ObjectFault("changed", f"{source} changed while it was stored.")
    if seen != size:
        raise ObjectFault("truncated", f"object {sha256} has {seen} bytes, not {size}.")
    raise ObjectFault("corrupt", f"object {sha256} has the hash {digest.hexdigest()}.")


def _pieces(handle: BinaryIO) -> Iterator[bytes]:
    while piece := handle.read(CHUNK_BYTES):
        yield piece


@contextlib.contextmanager
def _temporary(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new locked file, removed in the end; a killed writer's is swept by a later one."""
    path = folder / secrets.token_hex(12)
    with open(path, "xb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield path, handle
        finally:
            path.unlink(missing_ok=True)


def _sweep(incoming: Path, *, older_than_s: float = 60.0) -> None:
    """Remove what killed writers left: files that nobody locks (young ones may be about to be)."""
    for path in incoming.iterdir():
        with contextlib.suppress(OSError), open(path, "rb") as handle:
            if time.time() - os.fstat(handle.fileno()).st_mtime > older_than_s:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def no_room(error: OSError, place: Path) -> Exception:
    """ObjectFault when there is no room (disk, quota or file size limit), else the error itself."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ObjectFault("full", f"{place} has no room left ({error.strerror}); free some space.")
    return error
