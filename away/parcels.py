"""One tar, cut into parcels that fit what may travel at once, and put together again by hash."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MIB = 1 << 20
LISTING = "parcel.json"
SCHEMA = "harness/parcel/1"
_PIECE = 4 * MIB


class Broken(Exception):
    """One sentence: what is wrong with a parcel or a command, and what to do."""


def sha256(path: Path) -> str:
    """Of a file's bytes."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def pack(folders: Iterable[tuple[Path, str]], into: Path, *, limit: int) -> list[Path]:
    """Write every (file or folder, its name inside) as one packed tar, cut into `into`/N of at most
    `limit` bytes each. Returns the parcels, folders with a piece and a listing.
    """
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    whole = into / "whole.tar.gz"
    with tarfile.open(whole, "w:gz", compresslevel=5) as tar:
        for path, name in folders:
            tar.add(path, arcname=name)
    digest, size = sha256(whole), whole.stat().st_size
    count = max(1, -(-size // limit))
    parcels = []
    with open(whole, "rb") as handle:
        for number in range(1, count + 1):
            parcel = into / str(number)
            parcel.mkdir()
            name = f"piece.{number}"
            _copy(handle, parcel / name, limit)
            listing = {
                "schema": SCHEMA,
                "whole": {"sha256": digest, "bytes": size},
                "number": number,
                "of": count,
                "piece": {"name": name, "sha256": sha256(parcel / name)},
            }
            (parcel / LISTING).write_text(json.dumps(listing, indent=1) + "\n")
            parcels.append(parcel)
    whole.unlink()
    return parcels


def _copy(source: Any, target: Path, limit: int) -> None:
    with open(target, "wb") as handle:
        while limit and (data := source.read(min(_PIECE, limit))):
            handle.write(data)
            limit -= len(data)


def take(parcel: Path, store: Path) -> Path | None:
    """Keep a parcel's piece in `store`; the whole tar once all pieces are there, else null.

    Raises Broken for a piece that is not what its listing says.
    """
    listing = read_listing(parcel)
    folder = store / str(listing["whole"]["sha256"])[:16]
    folder.mkdir(parents=True, exist_ok=True)
    name, expected = str(listing["piece"]["name"]), listing["piece"]["sha256"]
    if sha256(parcel / name) != expected:
        raise Broken(f"{parcel / name} is not the piece that was packed; send it again")
    part = folder / f".{name}.part"
    shutil.copyfile(parcel / name, part)
    os.replace(part, folder / name)
    pieces = [folder / f"piece.{number}" for number in range(1, int(listing["of"]) + 1)]
    if not all(piece.exists() for piece in pieces):
        return None
    return _join(pieces, folder / "whole.tar.gz", listing["whole"]["sha256"])


def read_listing(parcel: Path) -> dict[str, Any]:
    """A parcel's listing. Raises Broken when there is none that can be used."""
    try:
        listing: dict[str, Any] = json.loads((parcel / LISTING).read_text())
    except (OSError, ValueError):
        raise Broken(f"{parcel} is no parcel: it holds no {LISTING} that can be read") from None
    if listing.get("schema") != SCHEMA:
        raise Broken(f"{parcel / LISTING} is of another kind: {listing.get('schema')}")
    return listing


def _join(pieces: list[Path], whole: Path, expected: str) -> Path:
    part = whole.with_suffix(".part")
    with open(part, "wb") as target:
        for piece in pieces:
            with open(piece, "rb") as source:
                shutil.copyfileobj(source, target, _PIECE)
    if sha256(part) != expected:
        raise Broken(f"the pieces in {whole.parent} make another whole; send all parcels again")
    os.replace(part, whole)
    for piece in pieces:
        piece.unlink()
    return whole


def unpack(whole: Path, into: Path) -> None:
    """Extract a tar; nothing of it can land outside `into`."""
    into.mkdir(parents=True, exist_ok=True)
    with tarfile.open(whole) as tar:
        tar.extractall(into, filter="data")
