"""Looking for secrets in what is about to be archived. A hit names its place, never its value.

Two kinds: values that this run knew, in every spelling of `known.py`; and named detectors of
formats that are secrets wherever they stand. Compressed files are not looked into.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.errors import BadInput
from harness.seal.known import spellings
from harness.seal.names import File, files_below

_CHUNK_BYTES = 1 << 20
_MAX_MATCH_BYTES = 8192
"""No detector's match is longer; the windows overlap by it."""

DETECTORS: Mapping[str, bytes] = {
    "aws-access-key-id": (
        rb"A(?:KIA|SIA|BIA|CCA)(?<![A-Za-z0-9/+].{4})[A-Z2-7]{16}(?![A-Za-z0-9/+])"
    ),
    "aws-secret-access-key": (
        rb"(?i:secret[_ -]?(?:access[_ -]?)?key)[\\\"'\s:=,]{1,12}"
        rb"(?![0-9a-fA-F]{40})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"
    ),
    "aws-session-token": rb"(?i:session[_-]?token)[\\\"'\s:=,]{1,12}[A-Za-z0-9/+]{100,4000}",
    "aws-presigned-url": rb"X-Amz-(?:Signature=[0-9a-f]{64}|Security-Token=[A-Za-z0-9%/+]{40})",
    "private-key": rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
    "openssh-private-key": rb"openssh-key-v1\x00",
    "openssh-private-key-base64": rb"b3BlbnNzaC1rZXkt" rb"djEA",
    "putty-private-key": rb"PuTTY-User-Key-File-[0-9]: ",
    "github-token": rb"gh[pousr]_(?<![A-Za-z0-9_]gh._)[A-Za-z0-9]{36,255}",
    "github-fine-grained-token": rb"github_pat_[A-Za-z0-9_]{60,255}",
    "hugging-face-token": rb"hf_(?<![A-Za-z0-9_]hf_)[A-Za-z0-9]{34,40}(?![A-Za-z0-9_])",
    "slack-token": rb"x(?:ox[abeoprs]|app)-(?<![A-Za-z0-9].{5})[A-Za-z0-9-]{20,255}",
    "slack-webhook": rb"hooks\.slack\.com/services/T[A-Z0-9]{6,20}/B[A-Z0-9]{6,20}/[A-Za-z0-9]{20}",
    "pulumi-token": rb"pul-(?<![A-Za-z0-9_-]pul-)[0-9a-f]{40}(?![0-9a-f])",
    "json-web-token": (
        rb"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}"
        rb"\.[A-Za-z0-9_-]{10,1500}"
    ),
    "password-in-url": (
        rb"://(?<=[A-Za-z0-9]://)[^\s/:@\"'<>\\]{0,200}:"
        rb"(?!\*+@)[^\s/@\"'<>\\]{1,300}@[A-Za-z0-9\[]"
    ),
}
"""Patterns by name. Hexadecimal hashes, git commits and public keys match none of them.

Each begins with letters that are searched for quickly; what may not stand before them is looked
up behind. Sources: the formats that AWS (IAM identifiers), GitHub, Hugging Face, Slack and Pulumi
document, RFC 7468 (PEM), OpenSSH PROTOCOL.key, RFC 7519 (JWT), RFC 3986 (user information).
"""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Where something stands that looks like a secret."""

    member: str
    """Path below the folder; a folder and '(a file name)' where the name itself is the hit."""
    offset: int
    """Bytes from the start of the file, or of the path."""
    detector: str
    """A detector's name, or 'known value NAME (spelling)'."""


Search = Callable[[bytes, int], "tuple[int, int] | None"]
"""(buffer, from) to the (start, end) of the first hit at or after it."""


def scan(folder: Path, known: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """Every finding in the files below `folder` and in their names, sorted.

    `known` are secret values by a name that may be printed. Raises BadInput for a link or special
    file, one that cannot be read, or a known value too short to be searched for.
    """
    searches, overlap = _searches(known)
    found: set[Finding] = set()
    for file in files_below(folder):
        hits = list(_in_name(file.name.encode("utf-8"), searches))
        member = _without(file.name, min(hits)[0]) if hits else file.name
        found.update(Finding(member, offset, detector) for offset, detector in hits)
        found.update(_in_file(file, member, searches, overlap))
    return tuple(sorted(found))


def _searches(known: Mapping[str, bytes]) -> tuple[dict[str, list[Search]], int]:
    searches: dict[str, list[Search]] = {
        name: [_pattern(pattern)] for name, pattern in DETECTORS.items()
    }
    overlap = _MAX_MATCH_BYTES
    for name, value in known.items():
        for needle, spelling in spellings(name, value).items():
            detector = f"known value {name} ({spelling})"
            searches.setdefault(detector, []).append(_needle(needle))
            overlap = max(overlap, len(needle))
    return searches, overlap


def _pattern(pattern: bytes) -> Search:
    compiled = re.compile(pattern)

    def search(buffer: bytes, start: int) -> tuple[int, int] | None:
        match = compiled.search(buffer, start)
        return None if match is None else match.span()

    return search


def _needle(needle: bytes) -> Search:
    def search(buffer: bytes, start: int) -> tuple[int, int] | None:
        at = buffer.find(needle, start)
        return None if at < 0 else (at, at + len(needle))

    return search


def _in_name(name: bytes, searches: Mapping[str, list[Search]]) -> Iterator[tuple[int, str]]:
    for detector, several in searches.items():
        for search in several:
            hit = search(name, 0)
            if hit is not None:
                yield hit[0], detector


def _without(name: str, offset: int) -> str:
    """The folders of a path before a hit in it: nothing of the value is shown."""
    folder, slash, _ = name.encode("utf-8")[:offset].decode("utf-8", "ignore").rpartition("/")
    return f"{folder}{slash}(a file name)"


def _in_file(
    file: File, member: str, searches: Mapping[str, list[Search]], overlap: int
) -> Iterator[Finding]:
    try:
        with open(file.path, "rb") as handle:
            yield from _in_stream(handle, member, searches, overlap)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=member) from None


def _in_stream(
    handle: BinaryIO,
    member: str,
    searches: Mapping[str, list[Search]],
    overlap: int,
    chunk_bytes: int = _CHUNK_BYTES,
) -> Iterator[Finding]:
    """Search window by window. The findings do not depend on where windows end.

    A hit is taken when it begins before the last `overlap` bytes of a window, so that all of it is
    in sight; later ones wait for the next window. One byte before is kept for look-behind.
    """
    buffer, base, resume = b"", 0, {(d, i): 0 for d, s in searches.items() for i in range(len(s))}
    while True:
        chunk = handle.read(chunk_bytes)
        buffer += chunk
        limit = len(buffer) - overlap if chunk else len(buffer) + 1
        for (detector, which), position in resume.items():
            search = searches[detector][which]
            at = max(position - base, 0)
            while (hit := search(buffer, at)) is not None and hit[0] < limit:
                yield Finding(member, base + hit[0], detector)
                at = hit[1]
            resume[detector, which] = base + max(at, limit)
        if not chunk:
            return
        drop = max(limit - 1, 0)
        buffer, base = buffer[drop:], base + drop
