"""Sealing a folder: the same files give the same bytes, whatever machine, order, time or mask."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from harness.errors import BadInput
from harness.seal import envelope
from harness.seal.header import END, header, padding
from harness.seal.index import INDEX, Index, Member, check_index
from harness.seal.limits import CAPS, Caps
from harness.seal.names import File, files_below
from harness.strict import shown
from trainer import contract

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed archive. `tar_sha256` is its identity; the gzip figures may change with zlib."""

    tar_sha256: str
    """Of the uncompressed tar."""
    tar_bytes: int
    gzip_sha256: str
    gzip_bytes: int
    index_sha256: str
    members: int
    """Files that the index binds; the index itself is not counted."""


def seal(folder: Path, archive: Path, *, caps: Caps = CAPS) -> Sealed:
    """Write every file below `folder` into `archive`, which appears whole or not at all.

    An index.json that is already there must be the archive's own. Raises BadInput for a link, a
    special file, a name or size that extraction would refuse, a file that changes meanwhile, or
    an archive that cannot be written.
    """
    if archive.resolve().is_relative_to(folder.resolve()):
        raise BadInput("the archive would lie in the folder that it seals", where=str(archive))
    tar = _tar_of(folder, caps)
    gzip_sha256, gzip_bytes = _write(archive, tar, caps)
    return Sealed(
        tar_sha256=tar.digest.hexdigest(),
        tar_bytes=tar.size,
        gzip_sha256=gzip_sha256,
        gzip_bytes=gzip_bytes,
        index_sha256=contract.sha256(tar.index_data),
        members=len(tar.index.members),
    )


def write_tar(folder: Path, path: Path, *, caps: Caps = CAPS) -> None:
    """The same tar as `seal` makes, without an envelope. Raises BadInput."""
    with open(path, "wb") as handle:
        for chunk in _tar_of(folder, caps).chunks():
            handle.write(chunk)


def _tar_of(folder: Path, caps: Caps) -> _Tar:
    files = [file for file in files_below(folder) if file.name != INDEX]
    index = Index(schema="harness/archive/1", members=tuple(_member(file, caps) for file in files))
    check_index(index, caps=caps)
    data = index.data()
    if len(data) > caps.index_bytes:
        raise BadInput(f"{INDEX} would have {len(data)} bytes, over the cap of {caps.index_bytes}")
    _check_own_index(folder, data)
    return _Tar(index, files, data)


@dataclass
class _Tar:
    """The tar's bytes, hashed as they pass by."""

    index: Index
    files: list[File]
    index_data: bytes
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    size: int = 0

    def chunks(self) -> Iterator[bytes]:
        """The whole tar, once."""
        for chunk in self._unhashed():
            self.digest.update(chunk)
            self.size += len(chunk)
            yield chunk

    def _unhashed(self) -> Iterator[bytes]:
        yield header(INDEX, len(self.index_data), executable=False)
        yield self.index_data + padding(len(self.index_data))
        for file, member in zip(self.files, self.index.members, strict=True):
            yield header(member.path, member.bytes, executable=member.mode == "755")
            yield from _same(file, member)
            yield padding(member.bytes)
        yield END


def _member(file: File, caps: Caps) -> Member:
    digest, size = hashlib.sha256(), 0
    with _open(file) as handle:
        while chunk := handle.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            if size > caps.member_bytes:
                break  # the check of the index names it
    return Member(
        path=file.name,
        sha256=digest.hexdigest(),
        bytes=size,
        mode="755" if file.executable else "644",
    )


def _same(file: File, member: Member) -> Iterator[bytes]:
    """The file's bytes again. Raises BadInput when they are not the ones in the index."""
    digest, left = hashlib.sha256(), member.bytes
    with _open(file) as handle:
        while chunk := handle.read(min(left, _CHUNK_BYTES)):
            digest.update(chunk)
            left -= len(chunk)
            yield chunk
        if left or handle.read(1) or digest.hexdigest() != member.sha256:
            raise BadInput(f"{shown(file.name)} changed while it was sealed")


def _open(file: File) -> BinaryIO:
    """Open for reading what is still a plain file. Raises BadInput."""
    try:
        number = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise BadInput(f"{shown(file.name)} cannot be read ({error.strerror})") from None
    handle = os.fdopen(number, "rb")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        handle.close()
        raise BadInput(f"{shown(file.name)} changed while it was sealed")
    return handle


def _check_own_index(folder: Path, data: bytes) -> None:
    """An extracted archive may be sealed again; any other index.json would be lost."""
    path = folder / INDEX
    if path.exists() and path.read_bytes() != data:
        raise BadInput("is the name of the archive's own index; rename it", where=str(path))


def _write(archive: Path, tar: _Tar, caps: Caps) -> tuple[str, int]:
    """Write the envelope by way of a temporary file; its (SHA-256, bytes)."""
    temporary = archive.with_name(f".{archive.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as handle:
            envelope.write(handle, tar.chunks())
            handle.flush()
            os.fsync(handle.fileno())
        digest, size = contract.hash_file(temporary)
        envelope.check_expansion(tar.size, size - envelope.OVERHEAD_BYTES, caps=caps)
        os.replace(temporary, archive)
        contract.sync_folder(archive.parent)
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", where=str(archive)) from None
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    return digest, size
