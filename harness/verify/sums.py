"""SHA256SUMS: one line a file, as `sha256sum -c` reads it.

A README.md that it does not name is nobody's evidence: whoever keeps a study may say in plain words
what it found, and that is left alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.errors import BadInput
from harness.strict import read_plain, shown
from trainer import contract

SUMS = "SHA256SUMS"
WORDS = "README.md"
_LINE = re.compile(r"([0-9a-f]{64})  (\S[^\n]*)")


def write_sums(folder: Path) -> None:
    """Name every file below `folder` but SHA256SUMS itself, sorted by path."""
    lines = [f"{contract.hash_file(folder / name)[0]}  {name}\n" for name in _names(folder)]
    contract.write_atomic(folder / SUMS, "".join(lines).encode())


def check_sums(folder: Path) -> int | None:
    """How many files have the hash that SHA256SUMS gives; None when there is no SHA256SUMS.

    Raises BadInput for the first file that differs, is missing or is not named.
    """
    path = folder / SUMS
    if not path.exists():
        return None
    try:
        text = read_plain(path).decode()
    except (OSError, UnicodeDecodeError):
        raise BadInput("cannot be read", where=str(path)) from None
    expected: dict[str, str] = {}
    for line in text.removesuffix("\n").split("\n"):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in expected:
            raise BadInput(f"has a line that is none: {shown(line)}", where=str(path))
        expected[match[2]] = match[1]
    names = [name for name in _names(folder) if name != WORDS or name in expected]
    for name in dict.fromkeys([*expected, *names]):
        if name not in expected:
            raise BadInput(f"is no part of {SUMS}", where=str(folder / name))
        if name not in names:
            raise BadInput(
                f"is missing, and {SUMS} names it", where=str(folder / shown(name)[1:-1])
            )
        if contract.hash_file(folder / name)[0] != expected[name]:
            raise BadInput(f"differs from its hash in {SUMS}", where=str(folder / name))
    if not text.endswith("\n"):
        raise BadInput("is cut off", where=str(path))
    return len(expected)


def _names(folder: Path) -> list[str]:
    """Every file below the folder. Raises BadInput for anything that is no plain file."""
    found = []
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise BadInput("is not a plain file", where=str(path))
        if path.is_file() and path.relative_to(folder).as_posix() != SUMS:
            found.append(path.relative_to(folder).as_posix())
    return sorted(found, key=str.encode)
