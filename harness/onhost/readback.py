"""Reading back: `readback --store ADDRESS --listing FILE` fetches and hashes every listed object.

Prints {pid, started_utc, finished_utc, seconds, listing_sha256, store, objects: [{name, sha256,
bytes, version, ok, fault}], totals: {objects, bytes, missing, truncated, corrupt, replaced}}, where
`bytes` is what was read and `version` what the store calls it, and exits 0 only when every object
is what the listing says, 5 when one is not, 4 when the store cannot be read now.
"""

from __future__ import annotations

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.onhost.command import parser, print_json, run_program, utc_now
from harness.onhost.objects import ObjectFault, Objects, open_objects
from harness.onhost.stage import Listed, read_listing
from trainer import contract

ReadFault = Literal["missing", "truncated", "corrupt", "replaced"]
KINDS: tuple[ReadFault, ...] = ("missing", "truncated", "corrupt", "replaced")


class Read(NamedTuple):
    """One object as it was read. Another size is 'truncated' or 'corrupt', another hash
    'corrupt', another version than the recorded one 'replaced'."""

    bytes: int
    fault: ReadFault | None
    version: str = ""


def read_object(objects: Objects, listed: Listed) -> Read:
    """Fetch and hash one object. Raises Fault when the store cannot be read now."""
    digest, seen, version = hashlib.sha256(), 0, listed.version
    try:
        now = objects.version_now(listed.sha256)
        version = version or now
        for piece in objects.chunks(listed.sha256, version):
            digest.update(piece)
            seen += len(piece)
    except ObjectFault as fault:
        return Read(seen, _kind(fault), version)
    if seen != listed.bytes:
        return Read(seen, "truncated" if seen < listed.bytes else "corrupt", version)
    if digest.hexdigest() != listed.sha256:
        return Read(seen, "corrupt", version)
    return Read(seen, None if now == version else "replaced", version)


def _kind(fault: ObjectFault) -> ReadFault:
    return next((kind for kind in KINDS if kind == fault.kind), "corrupt")


def readback(objects: Objects, listing: list[Listed], *, hashers: int = 0) -> dict[str, Any]:
    """Read every object; one that several names share is read once.

    Several are read at once, by default one a core: a core hashes one stream at a time.
    """
    began, started = time.monotonic(), utc_now()
    once = list({(each.sha256, each.bytes, each.version): each for each in listing}.values())
    count = max(1, min(hashers or os.cpu_count() or 1, len(once)))
    objects.readers(count)
    with ThreadPoolExecutor(count, thread_name_prefix="hasher") as pool:
        found = list(pool.map(lambda listed: read_object(objects, listed), once))
    read = {each[1:]: one for each, one in zip(once, found, strict=True)}
    rows = [_row(listed, read[listed[1:]]) for listed in listing]
    faults = [row["fault"] for row in rows]
    totals = {"objects": len(rows), "bytes": sum(one.bytes for one in found)}
    return {
        "pid": os.getpid(),
        "started_utc": started,
        "finished_utc": utc_now(),
        "seconds": round(time.monotonic() - began, 6),
        "listing_sha256": contract.hash_of([each.row() for each in listing]),
        "objects": rows,
        "totals": totals | {kind: faults.count(kind) for kind in KINDS},
    }


def _row(listed: Listed, read: Read) -> dict[str, Any]:
    row: dict[str, Any] = {"name": listed.name, "sha256": listed.sha256, "bytes": read.bytes}
    if read.version:
        row["version"] = read.version
    return row | {"ok": read.fault is None, "fault": read.fault}


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("--store", required=True, help="the store's address, JSON text")
    commands.add_argument("--listing", type=Path, required=True)
    given = commands.parse_args()
    result = readback(open_objects(given.store), read_listing(given.listing))
    print_json(result | {"store": contract.parse(given.store)})
    return 0 if all(row["ok"] for row in result["objects"]) else 5


if __name__ == "__main__":
    run_program(main)
