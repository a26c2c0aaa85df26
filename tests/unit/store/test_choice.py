"""Where a run's objects are: a folder, or a folder and the bucket once there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import BadInput, Refused
from harness.onhost.s3objects import S3Objects
from harness.plan import load_plan
from harness.store import choose
from harness.store.folder import FolderStore
from harness.store.mirrored import MirroredStore
from harness.store.s3 import S3Store
from harness.strict import load_file
from tests.toy_plan import toy_plan, write_plan
from tests.unit.store.admissions import admitted_in, provisioned
from tests.unit.store.bucket_server import BucketServer


@pytest.fixture
def mirrored(tmp_path: Path, objects: S3Objects) -> tuple[MirroredStore, list[S3Store]]:
    """A store whose bucket appears when it is put into the list."""
    there: list[S3Store] = []
    local = FolderStore(tmp_path / "runs" / "store")
    return MirroredStore(local, lambda: there[0] if there else None), there


def test_before_the_bucket_everything_is_here_and_hosts_are_refused(
    mirrored: tuple[MirroredStore, list[S3Store]], tmp_path: Path
) -> None:
    store, _ = mirrored
    artifact = store.put_bytes(b"inputs", name="inputs")
    assert artifact.version is None and store.read(artifact) == b"inputs"
    assert store.has(artifact.sha256)
    with pytest.raises(Refused, match="no bucket yet"):
        store.address()
    with pytest.raises(Refused, match="no bucket yet"):
        store.mirror((artifact,))


def test_what_was_prepared_early_is_brought_in_once_and_versioned(
    mirrored: tuple[MirroredStore, list[S3Store]], objects: S3Objects
) -> None:
    store, there = mirrored
    early = store.put_bytes(b"inputs", name="inputs")
    there.append(S3Store(objects.place))
    first = store.mirror((early,))
    assert first[0].version and first == store.mirror((early,))
    assert [row[0] for row in objects.list()] == [early.sha256]
    late = store.put_bytes(b"results", name="results")
    assert late.version and objects.head(late.sha256) is not None
    assert store.local.has(late.sha256)
    assert store.locate(late.sha256).startswith("s3://")


def test_what_only_the_bucket_has_is_read_from_there(
    mirrored: tuple[MirroredStore, list[S3Store]], objects: S3Objects, tmp_path: Path
) -> None:
    store, there = mirrored
    there.append(S3Store(objects.place))
    candidate = there[0].put_bytes(b"weights", name="weights")  # as a host stores it
    assert store.has(candidate.sha256) and not store.local.has(candidate.sha256)
    store.fetch(candidate, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"weights"


def test_the_stacks_bucket_is_found_from_the_runs_journal_and_the_admission(
    server: BucketServer, objects: S3Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    loaded = load_plan(write_plan(tmp_path, toy_plan()))
    runs, run = tmp_path / "runs", tmp_path / "runs" / "toy" / "one"
    run.mkdir(parents=True)
    store = choose.choose_store(loaded, runs, run, "stack")
    assert isinstance(store, MirroredStore) and store.remote() is None
    admitted_in(runs, "toy-fleet", bucket=objects.place.bucket)
    provisioned(run, "toy-fleet")
    artifact = store.put_bytes(b"late", name="late")
    assert store.locate(artifact.sha256).startswith(f"s3://{objects.place.bucket}/study/objects/")
    choose.write_record(store, run)
    again = choose.open_store(load_file(choose.StoreRecord, run / choose.RECORD), near=tmp_path)
    assert again.read(artifact) == b"late"


def test_workers_on_this_computer_use_a_folder_whatever_the_plan_says(tmp_path: Path) -> None:
    plan = toy_plan(store={"kind": "s3", "bucket": "some-bucket"})
    loaded = load_plan(write_plan(tmp_path, plan))
    runs = tmp_path / "runs"
    assert choose.choose_store(loaded, runs, runs, "local").kind == "folder"
    assert choose.choose_store(loaded, runs, runs, "hosts-file").kind == "s3"


def test_a_hosts_file_needs_a_bucket_by_name(tmp_path: Path) -> None:
    loaded = load_plan(write_plan(tmp_path, toy_plan(store={"kind": "s3"})))
    store = choose.choose_store(loaded, tmp_path, tmp_path, "hosts-file")
    with pytest.raises(BadInput, match="no stack whose bucket"):
        store.address()


def test_a_folder_of_another_computer_is_said_or_found_beside_the_run(tmp_path: Path) -> None:
    record = choose.StoreRecord(schema="harness/store/1", kind="folder", path="/nowhere/store")
    with pytest.raises(BadInput, match="not on this computer"):
        choose.open_store(record, near=tmp_path / "store")
    artifact = FolderStore(tmp_path / "store").put_bytes(b"x", name="x")
    assert choose.open_store(record, near=tmp_path / "store").read(artifact) == b"x"
