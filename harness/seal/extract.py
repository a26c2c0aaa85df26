"""Extracting an archive that anybody may have made: believed only byte by byte.

1. The envelope's compressed bytes are those that its header binds (length and hash).
2. The first member is index.json, canonical, sorted, with names that are safe and do not collide.
3. Every header is exactly the one that the index's next entry gives: no links, devices, folders,
   other owners or times, no member more, less or twice.
4. Every member's bytes have the index's length and hash; padding is zeros.
5. Two blocks of zeros, then nothing.
6. The uncompressed tar has the expected SHA-256, where one is given.

Everything is written into a new folder beside the wanted one, which takes its name at the end.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from harness.errors import BadInput
from harness.seal.envelope import Reader
from harness.seal.header import BLOCK, END, Parsed, header, padding, parse, pax_name, pax_size
from harness.seal.index import INDEX, Index, Member, read_index
from harness.seal.limits import CAPS, Caps
from harness.seal.names import check_name, path_of
from harness.strict import shown


def extract(
    archive: Path, folder: Path, *, expected_tar_sha256: str | None, caps: Caps = CAPS
) -> Index:
    """Write the archive's members, index.json among them, into `folder`: absent before, or empty.

    `folder` appears whole or not at all. Raises BadInput naming the archive and the first fault.
    """
    folder = folder.absolute()
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise BadInput("is not an empty folder", where=str(folder))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise BadInput(f"cannot be made ({error.strerror})", where=str(folder)) from None
    try:
        index = _extract(archive, fresh, expected_tar_sha256, caps)
        fresh.chmod(0o755)
        fresh.replace(folder)
    except OSError as error:
        raise BadInput(f"cannot be extracted ({error.strerror})", where=str(archive)) from None
    except BadInput as error:
        inner = f"{error.where}: {error.what}" if error.where else error.what
        raise BadInput(inner, where=str(archive)) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return index


def _extract(archive: Path, fresh: Path, expected: str | None, caps: Caps) -> Index:
    if archive.exists() and not archive.is_file():
        raise BadInput("is not a plain file")
    with open(archive, "rb") as handle:
        reader = Reader(handle, caps=caps)
        data = _read_index_member(reader, caps)
        index = read_index(data, caps=caps)
        _write(fresh, INDEX, [data], executable=False)
        for member in index.members:
            _check_header(reader, member)
            _write(fresh, member.path, _checked(reader, member), executable=member.mode == "755")
        _check_end(reader)
        reader.finish()
        if expected is not None and reader.digest.hexdigest() != expected:
            raise BadInput(f"the tar's SHA-256 is {reader.digest.hexdigest()}, not {expected}")
    return index


def _read_index_member(reader: Reader, caps: Caps) -> bytes:
    name, parsed = _next_header(reader)
    if name != INDEX:
        raise BadInput(f"the first member is {shown(name)}, not {INDEX}")
    if parsed.size > caps.index_bytes:
        raise BadInput(f"{INDEX} has {parsed.size} bytes, over the cap of {caps.index_bytes}")
    data = reader.exactly(parsed.size)
    _check_padding(reader, parsed.size)
    return data


def _next_header(reader: Reader) -> tuple[str, Parsed]:
    """The next member's name and header, which are in their normal form. Raises BadInput."""
    block = reader.exactly(BLOCK)
    if not any(block):
        raise BadInput("the archive ends before its last member")
    raw, parsed = block, parse(block)
    name = parsed.name
    if parsed.is_pax:
        record = reader.exactly(pax_size(parsed))
        filled = reader.exactly(len(padding(len(record))))
        block = reader.exactly(BLOCK)
        raw, name, parsed = raw + record + filled + block, pax_name(record), parse(block)
    check_name(name)
    if raw != header(name, parsed.size, executable=parsed.executable):
        raise BadInput(f"the header of the member {shown(name)} is not in its normal form")
    return name, parsed


def _check_header(reader: Reader, member: Member) -> None:
    name, parsed = _next_header(reader)
    if name != member.path:
        raise BadInput(f"the member {shown(name)} stands where {shown(member.path)} is due")
    if parsed.size != member.bytes or parsed.executable != (member.mode == "755"):
        raise BadInput(f"the member {shown(name)} has another size or mode than in {INDEX}")


def _checked(reader: Reader, member: Member) -> Iterable[bytes]:
    digest = hashlib.sha256()
    for piece in reader.pieces(member.bytes):
        digest.update(piece)
        yield piece
    if digest.hexdigest() != member.sha256:
        raise BadInput(f"the member {shown(member.path)} differs from its hash in {INDEX}")
    _check_padding(reader, member.bytes)


def _check_padding(reader: Reader, size: int) -> None:
    if any(reader.exactly(len(padding(size)))):
        raise BadInput("there are bytes between two members")


def _check_end(reader: Reader) -> None:
    block = reader.exactly(BLOCK)
    if any(block):
        parsed = parse(block)
        raise BadInput(f"the member {shown(parsed.name)} is not in {INDEX}")
    if reader.exactly(len(END) - BLOCK) != END[BLOCK:]:
        raise BadInput("the archive goes on after its end")


def _write(fresh: Path, name: str, pieces: Iterable[bytes], *, executable: bool) -> None:
    """Write a new file below `fresh`, where there are no links because none were ever made."""
    path = path_of(fresh, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "wb") as handle:
        for piece in pieces:
            handle.write(piece)
        os.fchmod(handle.fileno(), 0o755 if executable else 0o644)
