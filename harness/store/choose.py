"""Which store a run uses, and where its bucket is.

A plan on the stack's hosts keeps its objects in the stack's bucket; the plan may name another one.
On a hosts file a named bucket is used by the operator alone: those machines are given no
credentials. Workers on this computer always use a folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.admission import FleetKind
from harness.errors import BadInput
from harness.fleet.admitted import AdmittedFleet
from harness.journal import read_entries
from harness.onhost.s3place import S3Place
from harness.plan import LoadedPlan
from harness.plan.hosts import FolderStore as FolderChoice
from harness.plan.hosts import S3Store as S3Choice
from harness.store.folder import FolderStore
from harness.store.mirrored import MirroredStore
from harness.store.protocol import Store
from harness.strict import Model, build, load_file
from trainer import contract

RECORD = "store.json"
"""In a run's folder: where its objects are, for `harness fetch` from anywhere."""


class StoreRecord(Model):
    """store.json: a store's address. No secret is in it."""

    schema_: Literal["harness/store/1"] = Field(alias="schema")
    kind: Literal["folder", "s3"]
    path: str | None = None
    """Of a folder, absolute on the computer that ran the study."""
    bucket: str | None = None
    prefix: str | None = None
    region: str | None = None
    owner: str | None = None
    endpoint: str | None = None
    checksums: bool | None = None


def choose_store(loaded: LoadedPlan, runs: Path, run_folder: Path, kind: FleetKind) -> Store:
    """The store of a run. Nothing is asked of the network here."""
    chosen, local = loaded.plan.store, _folder(loaded, runs)
    if kind == "stack":
        return MirroredStore(local, lambda: _of_stack(runs, run_folder))
    if kind == "hosts-file" and isinstance(chosen, S3Choice):
        return MirroredStore(local, lambda: _named(loaded, chosen))
    return local


def kept_store(loaded: LoadedPlan, runs: Path, run_folder: Path) -> Store:
    """Where a run's objects must be now, for whoever asks whether they are: the bucket itself and
    not the folder in front of it. Raises BadInput, Waiting."""
    record = run_folder / RECORD
    if record.is_file():
        return open_store(load_file(StoreRecord, record), near=runs / "store")
    return _folder(loaded, runs)


def open_store(record: StoreRecord, *, near: Path) -> Store:
    """The store of a record. A folder that is not there is looked for at `near`.

    Raises BadInput, Waiting (a bucket that does not answer).
    """
    if record.kind == "s3":
        return _opened(S3Place.parse(record.to_json()))
    folder = Path(record.path or "")
    for path in (folder, near):
        if (path / "objects").is_dir():
            return FolderStore(path)
    raise BadInput("the store is a folder that is not on this computer", where=str(folder))


def write_record(store: Store, run_folder: Path) -> None:
    """Remember where the objects of a run are."""
    address: dict[str, Any] = contract.parse(store.address())
    record = build(StoreRecord, {"schema": "harness/store/1", **address}, where=RECORD)
    contract.write_json(run_folder / RECORD, record.to_json())


def place_of(admitted: AdmittedFleet) -> S3Place:
    """The objects of a fleet's bucket."""
    return S3Place(
        bucket=admitted.bucket,
        prefix=admitted.prefix.strip("/"),
        region=admitted.region,
        owner=admitted.account,
        **_endpoint(),
    )


def _folder(loaded: LoadedPlan, runs: Path) -> FolderStore:
    chosen = loaded.plan.store
    if isinstance(chosen, FolderChoice) and chosen.path is not None:
        return FolderStore(loaded.folder / chosen.path)
    return FolderStore(runs / "store")


def _of_stack(runs: Path, run_folder: Path) -> Store | None:
    """The bucket of the fleet that the provision stage recorded; null before it has."""
    entries, _ = read_entries(run_folder / "journal.jsonl")
    fleets = [e.data["fleet"] for e in entries if e.kind == "receipt" and e.key == "provision"]
    if not fleets:
        return None
    path = runs / "fleets" / str(fleets[-1]) / "admitted.json"
    return _opened(place_of(load_file(AdmittedFleet, path)))


def _named(loaded: LoadedPlan, chosen: S3Choice) -> Store:
    where = f"{loaded.path}#/store/bucket"
    if chosen.bucket is None:
        raise BadInput("a hosts file has no stack whose bucket could be used", where=where)
    aws = loaded.plan.hosts.aws
    region = aws.region if aws else os.environ.get("AWS_REGION", "us-east-1")
    prefix = (chosen.prefix or loaded.plan.name).strip("/")
    return _opened(S3Place(bucket=chosen.bucket, prefix=prefix, region=region, **_endpoint()))


def _opened(place: S3Place) -> Store:
    from harness.store.s3 import S3Store  # S3 only where a run has a bucket

    store = S3Store(place)
    store.check()
    return store


def _endpoint() -> dict[str, Any]:
    """A store that is not AWS, named as boto3 has it; hosts are told, and get no checksums."""
    given = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    return {"endpoint": given, "checksums": not given}
