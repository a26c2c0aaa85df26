"""Moving files between a host and the store.

`stage put --store ADDRESS --folder DIR` stores every file of a folder and prints the listing
`[{name, sha256, bytes, version}]` (no version where the store keeps none); `stage get --store
ADDRESS --listing FILE --folder DIR` makes a folder of exactly those files; `stage same --listing
FILE --folder DIR` prints {"same"}. Names are paths below the folder, with '/'.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from harness.onhost.command import Fault, parser, print_json, run_program
from harness.onhost.objects import Objects, open_objects
from trainer import contract


class Listed(NamedTuple):
    """One file of a listing. With a version exactly that one of the object is meant."""

    name: str
    sha256: str
    bytes: int
    version: str = ""

    def row(self) -> dict[str, Any]:
        """As it stands in a listing."""
        return {name: value for name, value in self._asdict().items() if value != ""}


def read_listing(path: Path) -> list[Listed]:
    """A listing from a file. Raises Fault when a name leaves the folder or is there twice."""
    rows: Any = contract.read_json(path)
    if not isinstance(rows, list):
        raise Fault(f"{path}: a listing is a list of {{name, sha256, bytes}}.")
    found: dict[str, Listed] = {}
    for number, row in enumerate(rows):
        try:
            version = str(row.get("version", ""))
            listed = Listed(str(row["name"]), str(row["sha256"]), int(row["bytes"]), version)
        except (TypeError, KeyError, ValueError, AttributeError):
            raise Fault(f"{path}#/{number}: not a {{name, sha256, bytes}}.") from None
        parts = PurePosixPath(listed.name).parts
        if not parts or listed.name.startswith("/") or ".." in parts or "\0" in listed.name:
            raise Fault(f"{path}#/{number}/name: '{listed.name}' leaves the folder.")
        if found.setdefault(listed.name, listed) != listed:
            raise Fault(f"{path}#/{number}/name: '{listed.name}' is there twice.")
    return list(found.values())


def put(objects: Objects, folder: Path) -> list[Listed]:
    """Store every file of a folder. Raises Fault when it holds a link or a special file."""
    if not folder.is_dir():
        raise Fault(f"{folder}: there is no such folder to store.")
    rows = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise Fault(f"{path}: only plain files are stored.")
        if path.is_file():
            rows.append(Listed(path.relative_to(folder).as_posix(), *objects.put_file(path)))
    return sorted(rows)


def same(folder: Path, listing: list[Listed]) -> bool:
    """Whether a folder holds exactly the listed files, by their hashes."""
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}
    return found == {row.name for row in listing} and all(
        contract.hash_file(folder / row.name) == (row.sha256, row.bytes) for row in listing
    )


def get(objects: Objects, listing: list[Listed], folder: Path) -> int:
    """Make `folder` hold exactly the listed files: bytes fetched (0: it did already).

    The folder appears whole; one with other content is replaced. Raises ObjectFault, Fault.
    """
    if folder.is_dir() and same(folder, listing):
        return 0
    folder.parent.mkdir(parents=True, exist_ok=True)
    _check_room(folder.parent, sum(row.bytes for row in listing))
    part = folder.parent / f".{folder.name}.{secrets.token_hex(6)}.tmp"
    part.mkdir()
    try:
        for row in listing:
            target = part / row.name
            target.parent.mkdir(parents=True, exist_ok=True)
            objects.fetch(row.sha256, row.bytes, target, row.version)
        for inner in (*(path for path in part.rglob("*") if path.is_dir()), part):
            contract.sync_folder(inner)
        replace_path(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return sum(row.bytes for row in listing)


def _check_room(place: Path, needed: int) -> None:
    free = shutil.disk_usage(place).free
    if needed > free:
        raise Fault(f"{place} has {free} bytes free; staging needs {needed}.", exit_code=4)


def replace_path(part: Path, target: Path) -> None:
    """Rename a finished file or folder into place; an old folder is set aside, then removed."""
    old = part.with_name(f"{part.name}.old")
    if target.is_dir():
        os.rename(target, old)
    try:
        os.rename(part, target)
    except OSError:
        if old.is_dir():
            os.rename(old, target)
        raise
    contract.sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("verb", choices=("put", "get", "same"))
    commands.add_argument("--store", help="the store's address, JSON text; for put and get")
    commands.add_argument("--folder", type=Path, required=True)
    commands.add_argument("--listing", type=Path, help="for get and same")
    given = commands.parse_args()
    if given.listing is None and given.verb != "put":
        raise Fault(f"stage {given.verb} needs --listing FILE.")
    if given.verb == "same":
        listing = read_listing(given.listing)
        print_json({"same": given.folder.is_dir() and same(given.folder, listing)})
        return 0
    if given.store is None:
        raise Fault(f"stage {given.verb} needs --store ADDRESS.")
    objects = open_objects(given.store)
    if given.verb == "put":
        print_json([row.row() for row in put(objects, given.folder)])
        return 0
    listing = read_listing(given.listing)
    moved = get(objects, listing, given.folder)
    print_json({"files": len(listing), "moved_bytes": moved, "skipped": moved == 0})
    return 0


if __name__ == "__main__":
    run_program(main)
