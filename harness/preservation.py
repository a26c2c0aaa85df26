"""Reading everything back: by whom, what the operator checks of it, and its own sample."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

import harness
from harness.errors import Leaked, Waiting
from harness.hosts.protocol import Host
from harness.plan.kinds import CountOrZero, Sha256
from harness.receipts import Readback
from harness.store.protocol import Artifact, Store
from harness.strict import Model, load
from trainer import contract

READBACK_S = 6 * 3600
SAMPLE_BYTES = 64 * 1024 * 1024
SAMPLE_OBJECTS = 64
SAMPLE_RULE = (
    f"the archive, then objects in the order of SHA-256(plan hash + object hash), as long as they "
    f"are at most {SAMPLE_OBJECTS} and at most {SAMPLE_BYTES} bytes together"
)


class Certificate(Model):
    """What `harness.onhost.readback` prints, as far as it is used."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    pid: CountOrZero
    seconds: float
    listing_sha256: Sha256
    store: dict[str, object]
    objects: tuple[Readback, ...]


def read_here(store: Store, rows: Sequence[Artifact], listing: Path) -> Certificate:
    """Read a listing back in another process on this computer. Raises Waiting."""
    contract.write_json(listing, [each.to_json() for each in rows])
    argv = [sys.executable, "-m", "harness.onhost.readback", "--store", store.address(),
            "--listing", str(listing)]  # fmt: skip
    top = str(Path(harness.__file__).parent.parent)
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        timeout=READBACK_S,
        env={**os.environ, "PYTHONPATH": top},
    )
    return _certificate(done.returncode, done.stdout, done.stderr, store, "this computer")


def read_on(host: Host, store: Store, rows: Sequence[Artifact], listing: Path) -> Certificate:
    """Read a listing back on a host, with its own credentials. Raises Waiting."""
    value = [each.to_json() for each in rows]
    contract.write_json(listing, value)
    remote = f"listings/{contract.hash_of(value)}.json"
    host.put(listing, remote)
    done = host.helper(
        "readback", "--store", store.address(), "--listing", f"{host.work}/{remote}",
        timeout_s=READBACK_S, check=False,
    )  # fmt: skip
    return _certificate(done.exit_code, done.stdout, done.stderr, store, host.name)


def check_certificate(
    certificate: Certificate, rows: Sequence[Artifact], store: Store, *, reader: str
) -> None:
    """Raises Leaked unless it is about exactly these objects, in this store, in these versions.

    A certificate that says 'whole' of something else, or of less, certifies nothing.
    """

    def refuse(what: str) -> None:
        raise Leaked(f"the readback's certificate {what}", where=reader)

    asked: Any = contract.parse(store.address())
    if certificate.store != asked:
        refuse("is of another store")
    if certificate.listing_sha256 != contract.hash_of([each.to_json() for each in rows]):
        refuse("is of another listing")
    if len(certificate.objects) != len(rows):
        refuse(f"has {len(certificate.objects)} objects, not {len(rows)}")
    for row, read in zip(rows, certificate.objects, strict=True):
        if (read.name, read.sha256) != (row.name, row.sha256):
            refuse(f"names {read.name} where {row.name} was asked for")
        if read.ok and (read.fault is not None or read.bytes != row.bytes):
            refuse(f"contradicts itself about {row.name}")
        if row.version is not None and read.version != row.version:
            refuse(f"is of another version of {row.name}")


def sample_of(rows: Sequence[Artifact], archive: Artifact, plan_hash: str) -> tuple[Artifact, ...]:
    """What the operator reads again itself (SAMPLE_RULE). Nobody on a host can choose it."""
    others = {each.sha256: each for each in rows if each.sha256 != archive.sha256}
    drawn = sorted(others, key=lambda digest: contract.sha256((plan_hash + digest).encode()))
    chosen, size = [archive], archive.bytes
    for digest in drawn:
        if len(chosen) == SAMPLE_OBJECTS:
            break
        if size + others[digest].bytes <= SAMPLE_BYTES:
            chosen.append(others[digest])
            size += others[digest].bytes
    return tuple(chosen)


def _certificate(code: int, out: str, err: str, store: Store, reader: str) -> Certificate:
    if code not in (0, 5) or not out:
        words = " ".join(err.split())[-300:] or f"status {code}"
        raise Waiting(f"the readback did not finish: {words}", where=reader)
    return load(Certificate, out.encode(), where=f"{reader}: the readback's answer")
