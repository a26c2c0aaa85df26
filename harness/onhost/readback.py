"""Reading back: `readback --store ADDRESS --listing FILE` fetches and hashes every listed object.

Prints {pid, started_utc, finished_utc, seconds, objects: [{name, sha256, bytes, ok, fault}],
totals: {objects, bytes, missing, truncated, corrupt}}, where `bytes` is what was read, and exits 0
only when every object is what the listing says.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any, Literal

from harness.onhost.command import parser, print_json, run_program, utc_now
from harness.onhost.objects import ObjectFault, Objects, open_objects
from harness.onhost.stage import Listed, read_listing

ReadFault = Literal["missing", "truncated", "corrupt"]
KINDS: tuple[ReadFault, ...] = ("missing", "truncated", "corrupt")


def read_object(objects: Objects, listed: Listed) -> tuple[int, ReadFault | None]:
    """(bytes read, what is wrong). Another size is 'truncated', another hash 'corrupt'."""
    digest, seen = hashlib.sha256(), 0
    try:
        for piece in objects.chunks(listed.sha256):
            digest.update(piece)
            seen += len(piece)
    except ObjectFault:
        return seen, "missing"
    if seen != listed.bytes:
        return seen, "truncated" if seen < listed.bytes else "corrupt"
    return seen, None if digest.hexdigest() == listed.sha256 else "corrupt"


def readback(objects: Objects, listing: list[Listed]) -> dict[str, Any]:
    """Read every object; one that several names share is read once."""
    began, started = time.monotonic(), utc_now()
    read: dict[tuple[str, int], tuple[int, ReadFault | None]] = {}
    rows = []
    for listed in listing:
        key = (listed.sha256, listed.bytes)
        if key not in read:
            read[key] = read_object(objects, listed)
        seen, fault = read[key]
        row = {"name": listed.name, "sha256": listed.sha256, "bytes": seen}
        rows.append(row | {"ok": fault is None, "fault": fault})
    faults = [row["fault"] for row in rows]
    totals = {"objects": len(rows), "bytes": sum(seen for seen, _ in read.values())}
    return {
        "pid": os.getpid(),
        "started_utc": started,
        "finished_utc": utc_now(),
        "seconds": round(time.monotonic() - began, 6),
        "objects": rows,
        "totals": totals | {kind: faults.count(kind) for kind in KINDS},
    }


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("--store", required=True, help="the store's address, JSON text")
    commands.add_argument("--listing", type=Path, required=True)
    given = commands.parse_args()
    result = readback(open_objects(given.store), read_listing(given.listing))
    print_json(result)
    return 0 if all(row["ok"] for row in result["objects"]) else 5


if __name__ == "__main__":
    run_program(main)
