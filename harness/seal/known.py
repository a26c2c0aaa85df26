"""The spellings in which a value that the run knew could stand in a file."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Iterator

from harness.errors import BadInput

MIN_KNOWN_BYTES = 6
"""A shorter value would be found everywhere."""


def spellings(name: str, value: bytes) -> dict[bytes, str]:
    """What to search for, with the name of each spelling.

    Raises BadInput, without the value, for one that is too short to be searched for.
    """
    value = value.strip()
    if len(value) < MIN_KNOWN_BYTES:
        raise BadInput(f"the known value '{name}' is shorter than {MIN_KNOWN_BYTES} bytes")
    found: dict[bytes, str] = {}
    for spelling, needle in _all(value):
        if len(needle) >= MIN_KNOWN_BYTES:
            found.setdefault(needle, spelling)
    return found


def _all(value: bytes) -> Iterator[tuple[str, bytes]]:
    yield "raw", value
    if b"\n" in value:
        yield "raw", value.replace(b"\n", b"\r\n")
        yield "unwrapped", b"".join(value.split(b"\n"))
        yield "a line of it", max(value.split(b"\n"), key=len)
    yield from _as_text(value)
    yield "hex", value.hex().encode()
    yield "hex", value.hex().upper().encode()
    yield from _as_base64(value)
    for safe in ("", "/"):
        quoted = urllib.parse.quote_from_bytes(value, safe=safe)
        yield "URL-encoded", quoted.encode()
        yield "URL-encoded", _lower_escapes(quoted).encode()
        yield "URL-encoded", quoted.replace("%20", "+").encode()


def _as_text(value: bytes) -> Iterator[tuple[str, bytes]]:
    """As JSON writes it, where it is text."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return
    for ascii_only in (False, True):
        yield "JSON", json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode()


def _as_base64(value: bytes) -> Iterator[tuple[str, bytes]]:
    """Base64 of the value anywhere inside a longer text: three alignments, both alphabets."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + value)
        first = (0, 2, 3)[before]
        # The last group may depend on what follows the value.
        tail = (before + len(value)) % 3
        last = len(encoded) - (4 if tail else 0) + (0, 1, 2)[tail]
        core = encoded[first:last]
        yield "base64", core
        yield "base64", core.replace(b"+", b"-").replace(b"/", b"_")


def _lower_escapes(quoted: str) -> str:
    head, *rest = quoted.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)
