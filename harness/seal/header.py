"""Tar headers in one normal form, written and read here (POSIX.1-2001, pax interchange format).

A member's header is a function of its name, size and mode alone: owner and group 0 without names,
time 0. A name that ustar's two ASCII fields cannot hold stands in a pax record before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import BadInput
from harness.strict import shown

BLOCK = 512
END = bytes(2 * BLOCK)
"""Two blocks of zeros end a tar."""

_MAX_PAX_BYTES = 4096
_REGULAR, _PAX = b"0", b"x"
_KINDS = {
    b"1": "a hard link", b"2": "a link", b"3": "a device", b"4": "a device", b"5": "a folder",
    b"6": "a pipe", b"g": "a global pax header", b"L": "a GNU long name", b"S": "a sparse file",
}  # fmt: skip


def header(name: str, size: int, *, executable: bool) -> bytes:
    """The header of one file: one block, or three when its name needs a pax record."""
    mode = 0o755 if executable else 0o644
    split = _split(name)
    if split is not None:
        return _block(split[1], split[0], size, mode, _REGULAR)
    record = _record("path", name)
    pax = _block(b"pax_header", b"", len(record), 0o644, _PAX)
    return pax + record + padding(len(record)) + _block(b"pax_name", b"", size, mode, _REGULAR)


def padding(size: int) -> bytes:
    """The zeros that fill up the last block of `size` bytes."""
    return bytes(-size % BLOCK)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a block says, before any of it is believed."""

    name: str
    size: int
    executable: bool
    is_pax: bool


def parse(block: bytes) -> Parsed:
    """Read one header block. Raises BadInput for anything but a plain file or a pax record."""
    if _checksum(block) != block[148:156]:
        raise BadInput("a tar header's checksum is wrong")
    raw = block[345:500].rstrip(b"\0") + b"/" if block[345:346] != b"\0" else b""
    raw += block[:100].rstrip(b"\0")
    name = raw.decode("utf-8", "backslashreplace")
    kind = block[156:157]
    if kind not in (_REGULAR, _PAX):
        what = _KINDS.get(kind, f"of the type {shown(kind.decode('latin-1'))}")
        raise BadInput(f"the member {shown(name)} is {what}; an archive holds plain files only")
    return Parsed(name, _octal(block[124:136], name), block[100:108] == b"0000755\0", kind == _PAX)


def pax_name(record: bytes) -> str:
    """The name in a pax record that holds nothing else. Raises BadInput when it is not UTF-8.

    The caller compares the whole header with `header(name, ...)`, the record in it.
    """
    _, _, text = record.partition(b" path=")
    try:
        return text.removesuffix(b"\n").decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("a pax record holds a path that is not UTF-8") from None


def pax_size(parsed: Parsed) -> int:
    """The bytes of a pax record. Raises BadInput when that is over what a name needs."""
    if parsed.size > _MAX_PAX_BYTES:
        raise BadInput(f"a pax record has {parsed.size} bytes, over the cap of {_MAX_PAX_BYTES}")
    return parsed.size


def _split(name: str) -> tuple[bytes, bytes] | None:
    """(prefix, name) for ustar's fields of 155 and 100 bytes, the prefix as short as it can be."""
    if not name.isascii():
        return None
    raw = name.encode("ascii")
    if len(raw) <= 100:
        return b"", raw
    cut = raw.find(b"/", len(raw) - 101)
    if cut <= 0 or cut > 155:
        return None
    return raw[:cut], raw[cut + 1 :]


def _block(name: bytes, prefix: bytes, size: int, mode: int, kind: bytes) -> bytes:
    zero = b"0000000\0"
    block = b"".join(
        (
            name.ljust(100, b"\0"), b"%07o\0" % mode, zero, zero, b"%011o\0" % size,
            b"00000000000\0", b" " * 8, kind, bytes(100), b"ustar\x0000", bytes(64), zero, zero,
            prefix.ljust(155, b"\0"), bytes(12),
        )
    )  # fmt: skip
    return block[:148] + _checksum(block) + block[156:]


def _checksum(block: bytes) -> bytes:
    return b"%06o\0 " % (sum(block[:148]) + 8 * ord(" ") + sum(block[156:]))


def _record(key: str, value: str) -> bytes:
    """A pax record, whose length counts its own digits."""
    body = f" {key}={value}\n".encode()
    length = len(body)
    while length != len(body) + len(str(length)):
        length = len(body) + len(str(length))
    return str(length).encode("ascii") + body


def _octal(digits: bytes, name: str) -> int:
    number = digits[:-1]
    if digits[-1:] != b"\0" or not all(48 <= digit < 56 for digit in number):
        raise BadInput(f"the size of the member {shown(name)} is not eleven octal digits")
    return int(number, 8)
