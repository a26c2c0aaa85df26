"""One file or folder as a single packed stream (tar in zlib), checked by its hash.

`trees hash PATH` prints {sha256, bytes} ({} when absent); `trees receive PATH --sha256 H` unpacks
standard input and puts it in place when it is what the hash says, else fails; `trees send PATH`
writes the stream. A folder's hash is `contract.tree_hash`, a file's that of its bytes.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from harness.onhost.command import Fault, parser, print_json, run_program
from harness.onhost.stage import replace_path
from trainer import contract

PIECE = 1 << 20
SAMPLE = 1 << 16
_WORTH = 0.97
"""What does not shrink below this share is sent as it is."""
_COPIES: dict[str, Any] = {"copybufsize": PIECE}
"""tarfile copies 16 KiB at a time, each time with the rest of the piece that it holds."""


def hash_of(path: Path) -> tuple[str, int] | None:
    """(hash, bytes) of a file or folder; None when it is absent."""
    if path.is_dir():
        rows = contract.tree_listing(path)
        return contract.hash_of(rows), sum(int(row["bytes"]) for row in rows)
    return contract.hash_file(path) if path.is_file() else None


class _Packer(io.RawIOBase):
    """Compresses what tarfile writes and hands it on; what does not shrink goes as it is."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write, self._level, self._packer = write, 1, zlib.compressobj(1)
        self._told = 0

    def level(self, level: int) -> None:
        """From here on with this level: a new zlib stream after the old one's end."""
        if level != self._level:
            self.end()
            self._level, self._packer = level, zlib.compressobj(level)

    def writable(self) -> bool:
        """tarfile asks."""
        return True

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        """Bytes of the tar."""
        if packed := self._packer.compress(data):
            self._write(packed)
        self._told += len(data)
        return len(data)

    def tell(self) -> int:
        """Bytes of the tar so far; tarfile asks."""
        return self._told

    def end(self) -> None:
        """What is still held back."""
        self._write(self._packer.flush())


def pack(path: Path, write: Callable[[bytes], object]) -> None:
    """Write a file or folder to `write` as one stream; hidden files and links are left out."""
    packer = _Packer(write)
    with tarfile.TarFile(fileobj=packer, mode="w", format=tarfile.PAX_FORMAT, **_COPIES) as tar:
        for name, file in _files(path):
            packer.level(_level(file))
            entry = tarfile.TarInfo(name)
            state = file.stat()
            entry.size, entry.mode = state.st_size, 0o755 if state.st_mode & 0o100 else 0o644
            with open(file, "rb") as handle:
                tar.addfile(entry, handle)
    packer.end()


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield "file", path
        return
    for row in contract.tree_listing(path):
        yield f"tree/{row['path']}", path / str(row["path"])


def _level(path: Path) -> int:
    """1 where the beginning of the file shrinks, else 0: weights hardly do."""
    with open(path, "rb") as handle:
        sample = handle.read(SAMPLE)
    return 1 if len(zlib.compress(sample, 1)) < _WORTH * len(sample) else 0


class Unpacker(io.RawIOBase):
    """The tar inside a packed stream, as a file that can be read once."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read, self._packer, self._held = read, zlib.decompressobj(), b""

    def readable(self) -> bool:
        """tarfile asks."""
        return True

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes. Raises Fault when the stream is not packed data."""
        while not self._held:
            if self._packer.eof:
                rest, self._packer = self._packer.unused_data, zlib.decompressobj()
                packed = rest or self._read(PIECE)
            else:
                packed = self._packer.unconsumed_tail or self._read(PIECE)
            if not packed:
                break
            try:
                self._held = self._packer.decompress(packed, PIECE)
            except zlib.error as error:
                raise Fault(f"the stream is damaged ({error}).", exit_code=4) from None
        piece, self._held = self._held[:size], self._held[size:]
        return piece


def unpack(read: Callable[[int], bytes], target: Path, sha256: str) -> int:
    """Put the stream's file or folder at `target`, whole. Returns its bytes.

    Raises Fault when it is not what `sha256` says; `target` is then as it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.parent / f".{target.name}.{secrets.token_hex(6)}.tmp"
    part.mkdir()
    try:
        (part / "tree").mkdir()
        try:
            with tarfile.open(fileobj=Unpacker(read), mode="r|", bufsize=PIECE, **_COPIES) as tar:
                tar.extractall(part, filter="data")
        except (tarfile.TarError, EOFError) as error:
            raise Fault(f"the stream is damaged ({error}).", exit_code=4) from None
        whole = part / ("file" if (part / "file").exists() else "tree")
        found = hash_of(whole)
        if found is None or found[0] != sha256:
            raise Fault(f"{target}: what arrived is not what was sent.", exit_code=4)
        replace_path(whole, target)
        return found[1]
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _input() -> BinaryIO:
    return open(0, "rb", closefd=False)


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
        with _input() as source:
            moved = unpack(source.read1, given.path, given.sha256)  # type: ignore[attr-defined]
        print_json({"bytes": moved})
    else:
        if hash_of(given.path) is None:
            raise Fault(f"{given.path} is not there.", exit_code=4)
        pack(given.path, sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    run_program(main)
