"""Objects between the store and hosts: moved by the host where it reaches the store, else by us."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from harness.errors import HarnessError
from harness.hosts.protocol import Host
from harness.store.protocol import Artifact
from harness.strict import build
from harness.study import Study
from trainer import contract

T = TypeVar("T")
STAGE_S = 3600.0
MOVED = "moved"
"""Key of the journal's notes about transfers between a host and the store."""


def on_every(hosts: Sequence[Host], work: Callable[[Host], T]) -> tuple[T, ...]:
    """Do work on all hosts at once; results in the hosts' order.

    Every host is waited for. Raises the first host's error, which names how many others failed.
    """
    with ThreadPoolExecutor(max(1, len(hosts))) as pool:
        waiting = [pool.submit(work, host) for host in hosts]
    errors = [error for each in waiting if (error := each.exception()) is not None]
    if errors:
        ours = [error for error in errors if isinstance(error, HarnessError)]
        first = ours[0] if len(ours) == len(errors) else next(e for e in errors if e not in ours)
        if isinstance(first, HarnessError) and len(errors) > 1:
            first.what += f" (and {len(errors) - 1} other host(s) failed)"
        raise first
    return tuple(each.result() for each in waiting)


def reaches_store(study: Study, host: Host) -> bool:
    """Whether a host moves objects itself: a worker on this computer, or one of the stack's hosts,
    whose role reaches its bucket. Machines of a hosts file are given no credentials."""
    if study.fleet_kind == "local":
        return True
    return study.fleet_kind == "stack" and study.store.kind == "s3"


def bring(study: Study, host: Host, folder: str, listing: Path) -> int:
    """Objects of a listing into a host's folder by way of this computer: bytes that it lacked."""
    rows = contract.read_json(listing)
    wanted = [build(Artifact, row, where=f"{listing}#/{i}") for i, row in enumerate(rows)]
    local = study.work / "bring" / contract.hash_of(rows)
    for each in wanted:
        if not (local / each.name).exists():
            study.store.fetch(each, local / each.name)
    return host.send(local, folder)


def moved(study: Study, host: Host, size: int, began: float) -> None:
    """Keep what a transfer took, so that a later one can be planned (harness.departure)."""
    if size:
        seconds = round(study.clock.monotonic() - began, 6)
        study.journal.note(MOVED, {"host": host.name, "bytes": size, "seconds": seconds})


def keep_folder(study: Study, host: Host, folder: str, *, label: str) -> tuple[Artifact, ...]:
    """Every file of a host's folder into the store, named by its path in the folder."""
    began = study.clock.monotonic()
    kept = _keep_folder(study, host, folder, label)
    moved(study, host, sum(each.bytes for each in kept), began)
    return kept


def _keep_folder(study: Study, host: Host, folder: str, label: str) -> tuple[Artifact, ...]:
    if reaches_store(study, host):
        address = study.store.address()
        answer = host.helper(
            "stage", "put", "--store", address, "--folder", folder, timeout_s=STAGE_S
        )
        rows = contract.parse(answer.stdout)
        return tuple(build(Artifact, row, where=f"{host.name}: {folder}") for row in rows)
    local = study.work / "kept" / label
    host.get(folder, local)
    files = sorted(path for path in local.rglob("*") if path.is_file())
    kept = [study.store.put(path, name=path.relative_to(local).as_posix()) for path in files]
    shutil.rmtree(local)
    return tuple(kept)
