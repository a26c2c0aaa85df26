"""One hash over all prepared inputs: the sorted listing of files and its SHA-256."""

from __future__ import annotations

from pathlib import Path

from harness.plan.kinds import CountOrZero, Sha256, Text
from harness.strict import Model
from trainer import contract


class PreparedFile(Model):
    """One file of the prepared folder."""

    path: Text
    """Relative to the folder, with '/'."""
    sha256: Sha256
    bytes: CountOrZero


def list_files(folder: Path) -> tuple[PreparedFile, ...]:
    """Every file under the folder, sorted by the bytes of its path."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            digest, size = contract.hash_file(path)
            relative = path.relative_to(folder).as_posix()
            found.append(PreparedFile(path=relative, sha256=digest, bytes=size))
    return tuple(sorted(found, key=lambda file: file.path.encode()))


def identity_of(files: tuple[PreparedFile, ...]) -> str:
    """The identity: SHA-256 of the listing's canonical JSON."""
    return contract.hash_of([file.to_json() for file in files])
