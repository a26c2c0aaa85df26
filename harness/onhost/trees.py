"""One file or folder as a single packed stream, checked by its hash as it arrives.

`trees hash PATH` prints {sha256, bytes} ({} when absent); `trees receive PATH [--sha256 H]`
unpacks standard input and puts it in place when it is what its end (and H) says, else fails;
`trees send PATH` writes the stream. A folder's hash is `contract.tree_hash`, a file's that of its
bytes.

The stream: for every file a line {path, mode, packed} of canonical JSON, then pieces (four bytes
of length, most significant first, and as many bytes; the file's bytes, or their zlib stream) up to
an empty piece. A line {sha256, packed_sha256} ends it: the hash of all, and that of the zlib
streams one after another, for a zlib stream can be changed and yield the same bytes. A file that
stands alone has the path ''.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from harness.onhost.command import Fault, parser, print_json, run_program
from harness.onhost.stage import replace_path
from trainer import contract

PIECE = 1 << 20
SAMPLE = 1 << 16
LINE_BYTES = 1 << 16
_WORTH = 0.97
"""What does not shrink below this share is sent as it is."""


def hash_of(path: Path) -> tuple[str, int] | None:
    """(hash, bytes) of a file or folder; None when it is absent."""
    if path.is_dir():
        rows = contract.tree_listing(path)
        return contract.hash_of(rows), sum(int(row["bytes"]) for row in rows)
    return contract.hash_file(path) if path.is_file() else None


def size_of(path: Path) -> int:
    """Bytes of what `pack` would send. Raises Fault for a link."""
    if path.is_dir():
        return sum((path / name).stat().st_size for name in names_in(path))
    return path.stat().st_size


def names_in(folder: Path) -> list[str]:
    """`contract.tree_names`. Raises Fault for a link."""
    try:
        return contract.tree_names(folder)
    except contract.ContractError as error:
        raise Fault(f"{error}.") from None


class _Hashed:
    """The rows of what went by, and the hash of all as `hash_of` would tell it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._packed = hashlib.sha256()

    def packed(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces of a zlib stream, noted as they go by."""
        for piece in pieces:
            self._packed.update(piece)
            yield piece

    def packed_sha256(self) -> str:
        return self._packed.hexdigest()

    def add(self, path: str, mode: str, sha256: str, size: int) -> None:
        self.rows.append({"path": path, "sha256": sha256, "bytes": size, "mode": mode})

    def sha256(self) -> str:
        if [row["path"] for row in self.rows] == [""]:
            return str(self.rows[0]["sha256"])
        return contract.hash_of(self.rows)

    def bytes(self) -> int:
        return sum(int(row["bytes"]) for row in self.rows)


class _Sink:
    """Gathers small writes; large ones go as they are."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write, self._held = write, bytearray()

    def line(self, value: dict[str, Any]) -> None:
        self.add(contract.canonical(value) + b"\n")

    def piece(self, data: bytes) -> None:
        self.add(struct.pack(">I", len(data)))
        self.add(data)

    def add(self, data: bytes) -> None:
        if len(data) >= SAMPLE:
            self.flush()
            self._write(data)
            return
        self._held += data
        if len(self._held) >= PIECE:
            self.flush()

    def flush(self) -> None:
        if self._held:
            self._write(bytes(self._held))
            self._held.clear()


def pack(path: Path, write: Callable[[bytes], object]) -> None:
    """Write a file or folder to `write` as one stream; hidden files and caches are left out."""
    sink, hashed = _Sink(write), _Hashed()
    names = names_in(path) if path.is_dir() else [""]
    for name in names:
        with open(path / name if name else path, "rb") as handle:
            _pack_file(name, handle, sink, hashed)
    sink.line({"sha256": hashed.sha256(), "packed_sha256": hashed.packed_sha256()})
    sink.flush()


def _pack_file(name: str, handle: BinaryIO, sink: _Sink, hashed: _Hashed) -> None:
    first = handle.read(PIECE)
    sample = first[:SAMPLE]
    worth = len(zlib.compress(sample, 1)) < _WORTH * len(sample)
    mode = "755" if os.fstat(handle.fileno()).st_mode & 0o100 else "644"
    sink.line({"path": name, "mode": mode, "packed": worth})
    sha256, size = hashlib.sha256(), 0

    def plain() -> Iterator[bytes]:
        nonlocal size
        piece = first
        while piece:
            sha256.update(piece)
            size += len(piece)
            yield piece
            piece = handle.read(PIECE)

    for data in hashed.packed(_zlib(plain())) if worth else plain():
        sink.piece(data)
    sink.piece(b"")
    hashed.add(name, mode, sha256.hexdigest(), size)


def _zlib(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces as one zlib stream; no part of it is empty."""
    packer = zlib.compressobj(1)
    for piece in pieces:
        if data := packer.compress(piece):
            yield data
    yield packer.flush()


class _Source:
    """Lines and pieces of a stream. Raises Fault when it ends early or is no such stream."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read, self._held = read, b""

    def line(self) -> dict[str, Any]:
        while (end := self._held.find(b"\n")) < 0:
            if len(self._held) > LINE_BYTES:
                raise damaged("a line is too long")
            self._held += self._some()
        line, self._held = self._held[:end], self._held[end + 1 :]
        try:
            found = contract.parse(line, where="the stream")
        except contract.ContractError as error:
            raise damaged(str(error)) from None
        if not isinstance(found, dict):
            raise damaged("a line is no object")
        return found

    def pieces(self) -> Iterator[bytes]:
        """The bytes of a file's pieces, in parts of any size."""
        while True:
            while len(self._held) < 4:
                self._held += self._some()
            (left,) = struct.unpack_from(">I", self._held)
            self._held = self._held[4:]
            if left == 0:
                return
            while left:
                data = self._held or self._some()
                part, self._held = data[:left], data[left:]
                left -= len(part)
                yield part

    def _some(self) -> bytes:
        data = self._read(PIECE)
        if not data:
            raise damaged("it ended early")
        return data


def damaged(why: str) -> Fault:
    """The stream cannot be used."""
    return Fault(f"the stream is damaged ({why}).", exit_code=4)


def unpack(read: Callable[[int], bytes], target: Path, sha256: str = "") -> int:
    """Put the stream's file or folder at `target`, whole. Returns its bytes.

    Raises Fault when it is not what `sha256` (else the stream's own end) says; `target` is then as
    it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.parent / f".{target.name}.{secrets.token_hex(6)}.tmp"
    part.mkdir()
    try:
        source, hashed = _Source(read), _Hashed()
        (part / "tree").mkdir()
        while "sha256" not in (header := source.line()):
            _unpack_file(header, source, part, hashed)
        told = {"sha256": sha256 or hashed.sha256(), "packed_sha256": hashed.packed_sha256()}
        if hashed.sha256() != told["sha256"] or header != told:
            raise Fault(f"{target}: what arrived is not what was sent.", exit_code=4)
        whole = part / ("file" if (part / "file").exists() else "tree")
        replace_path(whole, target)
        return hashed.bytes()
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _unpack_file(header: dict[str, Any], source: _Source, part: Path, hashed: _Hashed) -> None:
    name, mode, packed = header.get("path"), header.get("mode"), header.get("packed")
    if not isinstance(name, str) or mode not in ("755", "644") or not isinstance(packed, bool):
        raise damaged("a line names no file")
    if (alone := name == "") and hashed.rows:
        raise damaged("a second file")
    place = part / "file" if alone else part / "tree" / _inside(name)
    sha256, size = hashlib.sha256(), 0
    with _new(place) as out:
        pieces = source.pieces()
        for data in _plain(hashed.packed(pieces)) if packed else pieces:
            sha256.update(data)
            size += out.write(data)
    place.chmod(int(mode, 8))
    hashed.add(name, mode, sha256.hexdigest(), size)


def _new(place: Path) -> BinaryIO:
    """A new file. Raises Fault when the stream put something there before."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        return open(place, "xb")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise damaged("a path is there twice") from None


def _inside(name: str) -> PurePosixPath:
    """A relative path that stays where it is put. Raises Fault."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != name or "\0" in name:
        raise damaged(f"'{name[:80]}' leaves the folder")
    return path


def _plain(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """What a zlib stream in pieces holds, at most PIECE bytes at a time."""
    packer = zlib.decompressobj()
    for data in pieces:
        while data:
            try:
                yield packer.decompress(data, PIECE)
            except zlib.error as error:
                raise damaged(str(error)) from None
            data = packer.unconsumed_tail
    if not packer.eof:
        raise damaged("a file ended early")


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("verb", choices=("hash", "receive", "send"))
    commands.add_argument("path", type=Path)
    commands.add_argument("--sha256", default="")
    given = commands.parse_args()
    if given.verb == "hash":
        found = hash_of(given.path)
        print_json({"sha256": found[0], "bytes": found[1]} if found else {})
    elif given.verb == "receive":
        print_json({"bytes": unpack(lambda most: os.read(0, most), given.path, given.sha256)})
    else:
        if not given.path.exists():
            raise Fault(f"{given.path} is not there.", exit_code=4)
        pack(given.path, sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    run_program(main)
