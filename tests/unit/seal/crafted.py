"""Folders to seal, and archives that no honest program would write."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

from harness.seal import Index, Member, envelope
from harness.seal.header import END, header, padding
from trainer import contract

FILES: Mapping[str, bytes] = {
    "plan.json": b"{}\n",
    "models/pair/scores.jsonl": b'{"id":"a"}\n' * 200,
    "arms/single/empty.log": b"",
    "launch": b"#!/bin/sh\n",
    "A": b"upper",
    "a": b"lower",
    f"deep/{'n' * 90}/{'m' * 90}/\u00e9-answers.bin": bytes(range(256)) * 5,
    "half.bin": b"x" * 512,
}


def write_folder(folder: Path, files: Mapping[str, bytes] = FILES) -> Path:
    """Write files below a folder; `launch` is executable."""
    for name, data in files.items():
        path = folder / os.fsdecode(name.encode())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if (folder / "launch").exists():
        (folder / "launch").chmod(0o755)
    return folder


def index_of(files: Mapping[str, bytes]) -> bytes:
    """index.json that binds these files, in the order given."""
    members = tuple(
        Member(path=name, sha256=contract.sha256(data), bytes=len(data), mode="644")
        for name, data in files.items()
    )
    return Index(schema="harness/archive/1", members=members).data()


def entry(name: str, data: bytes) -> bytes:
    """One member as the archive writes it."""
    return header(name, len(data), executable=False) + data + padding(len(data))


def tar_of(files: Mapping[str, bytes], *, index: bytes | None = None) -> bytes:
    """A tar in the archive's own form, index first; nothing of it is checked."""
    data = index_of(files) if index is None else index
    return entry("index.json", data) + b"".join(entry(n, d) for n, d in files.items()) + END


FIELDS = {
    "name": (0, 100), "mode": (100, 8), "uid": (108, 8), "gid": (116, 8), "size": (124, 12),
    "mtime": (136, 12), "type": (156, 1), "linkname": (157, 100), "magic": (257, 6),
    "version": (263, 2), "uname": (265, 32), "gname": (297, 32), "devmajor": (329, 8),
    "devminor": (337, 8), "prefix": (345, 155), "rest": (500, 12),
}  # fmt: skip
"""Where the fields of a tar header stand: (offset, bytes)."""


def with_fields(block: bytes, **fields: bytes) -> bytes:
    """The header block with other fields and a checksum that fits them."""
    changed = bytearray(block)
    for name, value in fields.items():
        offset, width = FIELDS[name]
        changed[offset : offset + width] = value.ljust(width, b"\0")
    changed[148:156] = b"%06o\0 " % (sum(changed[:148]) + 256 + sum(changed[156:]))
    return bytes(changed)


def foreign_tar(**fields: bytes) -> bytes:
    """The index, and a file 'x' whose header has other fields."""
    data = b"12345"
    block = with_fields(header("x", len(data), executable=False), **fields)
    return entry("index.json", index_of({"x": data})) + block + data + padding(len(data)) + END


def around_deflate(path: Path, deflated: bytes, tar: bytes) -> Path:
    """An envelope that binds any compressed bytes, with the trailer of a tar."""
    head = in_envelope(path, b"").read_bytes()[:16]
    bound = struct.pack("<Q", len(deflated)) + hashlib.sha256(deflated).digest()
    path.write_bytes(head + bound + deflated + struct.pack("<II", zlib.crc32(tar), len(tar)))
    return path


def in_envelope(path: Path, tar: bytes) -> Path:
    """Put any bytes into a correct envelope."""
    with open(path, "wb") as handle:
        envelope.write(handle, [tar])
    return path
