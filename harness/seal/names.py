"""Member names: what may be one, and what two of them may not share. Files below a folder."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import BadInput
from harness.strict import shown

MAX_NAME_BYTES = 1024
MAX_PART_BYTES = 255
MAX_DEPTH = 64


def check_name(name: str) -> None:
    """Refuse a name that is not a plain relative path with '/' between its parts.

    Raises BadInput with the name, shortened and escaped.
    """
    fault = _fault(name)
    if fault:
        raise BadInput(f"the member name {shown(name)} {fault}")


def _fault(name: str) -> str:
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError:
        return "is not UTF-8"
    parts = name.split("/")
    if name.startswith("/"):
        return "is absolute"
    if ".." in parts:
        return "has '..' in it"
    if "" in parts or "." in parts:
        return "has an empty part or '.' in it"
    if any(unicodedata.category(character) == "Cc" for character in name) or "\\" in name:
        return "has a control character or a backslash in it"
    if len(encoded) > MAX_NAME_BYTES or len(parts) > MAX_DEPTH:
        return f"is longer than {MAX_NAME_BYTES} bytes or {MAX_DEPTH} parts"
    if any(len(part.encode("utf-8")) > MAX_PART_BYTES for part in parts):
        return f"has a part longer than {MAX_PART_BYTES} bytes"
    return ""


def sort_key(name: str) -> bytes:
    """Members are sorted by this."""
    return name.encode("utf-8")


@dataclass
class Names:
    """Names seen so far; a file system that normalises must be able to tell them apart.

    Names that differ in case only are different names.
    """

    _taken: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """(as spelled, whether a file) by the name in NFC, folders too."""

    def add(self, name: str) -> None:
        """Take a file's name in. Raises BadInput if it is no name, is there, or collides."""
        check_name(name)
        parts = name.split("/")
        for count in range(1, len(parts)):
            self._claim("/".join(parts[:count]), is_file=False)
        self._claim(name, is_file=True)

    def _claim(self, path: str, *, is_file: bool) -> None:
        normal = unicodedata.normalize("NFC", path)
        before = self._taken.get(normal)
        if before is None:
            self._taken[normal] = (path, is_file)
            return
        spelled, was_file = before
        if spelled != path:
            raise BadInput(f"the member names {shown(spelled)} and {shown(path)} are one in NFC")
        if is_file and was_file:
            raise BadInput(f"the member name {shown(path)} appears twice")
        if is_file or was_file:
            raise BadInput(f"the member name {shown(path)} is both a file and a folder")


@dataclass(frozen=True, slots=True)
class File:
    """A regular file below a folder."""

    name: str
    """Relative, '/' between parts; its bytes on disk are this in UTF-8, whatever the locale."""
    path: Path
    bytes: int
    executable: bool
    """By its owner."""


def files_below(folder: Path) -> list[File]:
    """Every file below a folder, sorted by the UTF-8 bytes of its name. Empty folders are dropped.

    Raises BadInput for a link, a device, a pipe, a socket, a name that `check_name` refuses, or
    two names that collide.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise BadInput("is not a folder", where=str(folder))
    found = sorted(_walk(folder, ""), key=lambda file: sort_key(file.name))
    names = Names()
    for file in found:
        names.add(file.name)
    return found


def path_of(folder: Path, name: str) -> Path:
    """Where a member stands below a folder, in any locale."""
    return folder / os.fsdecode(name.encode("utf-8"))


def _walk(folder: Path, prefix: str) -> Iterator[File]:
    try:
        entries = [(entry, entry.stat(follow_symlinks=False)) for entry in os.scandir(folder)]
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=str(folder)) from None
    for entry, status in entries:
        name = prefix + _decode(entry.name)
        if stat.S_ISDIR(status.st_mode):
            check_name(name)
            yield from _walk(folder / entry.name, f"{name}/")
        elif stat.S_ISREG(status.st_mode):
            executable = bool(status.st_mode & stat.S_IXUSR)
            yield File(name, folder / entry.name, status.st_size, executable)
        else:
            kind = "a link" if stat.S_ISLNK(status.st_mode) else "not a plain file"
            raise BadInput(f"{shown(name)} is {kind}; an archive holds plain files only")


def _decode(name: str) -> str:
    """A name as the operating system gave it, read as UTF-8 in any locale."""
    raw = os.fsencode(name)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"the file name {shown(raw.decode('latin-1'))} is not UTF-8") from None
