"""Objects in a bucket: written once whoever writes, large ones in parts, read back to the byte."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.onhost import multipart
from harness.onhost.objects import ObjectFault, Stored, open_objects
from harness.onhost.s3objects import S3Objects
from harness.onhost.s3place import StoreFault
from harness.store.protocol import Store
from harness.store.s3 import S3Store
from tests.unit.store.bucket_server import BucketServer, refuse
from trainer import contract

ROOT = Path(__file__).resolve().parents[3]
PART_BYTES = 5 << 20
"""The least that S3 takes."""
LARGE = PART_BYTES * 2 + 12345


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart, "PART_BYTES", PART_BYTES)


def large_file(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(LARGE))
    return path


def uploads(objects: S3Objects) -> list[Any]:
    found = objects.client.list_multipart_uploads(Bucket=objects.place.bucket)
    return list(found.get("Uploads", []))


def test_it_is_a_store_whose_address_holds_no_secret(objects: S3Objects) -> None:
    store: Store = S3Store(objects.place)
    assert store.kind == "s3"
    assert "test-only-value" not in store.address()
    again = open_objects(store.address())
    assert isinstance(again, S3Objects) and again.place == objects.place
    assert store.locate("0" * 64) == f"s3://{objects.place.bucket}/study/objects/{'0' * 64}"


def test_what_is_put_is_found_read_listed_and_versioned(objects: S3Objects, tmp_path: Path) -> None:
    store = S3Store(objects.place)
    assert list(store.list()) == []
    small = store.put_bytes(b"hello", name="greeting")
    path = large_file(tmp_path)
    large = store.put(path, name="weights")
    assert (small.sha256, small.bytes) == (contract.sha256(b"hello"), 5)
    assert small.version and large.version
    assert store.read(small) == b"hello"
    assert store.has(large.sha256) and not store.has("0" * 64)
    assert sorted(store.list()) == sorted([(small.sha256, 5), (large.sha256, LARGE)])
    store.fetch(large, tmp_path / "new" / "copy")
    assert (tmp_path / "new" / "copy").read_bytes() == path.read_bytes()
    assert uploads(objects) == []


def test_an_empty_object_and_sizes_around_a_part(objects: S3Objects, tmp_path: Path) -> None:
    for size in (0, 1, PART_BYTES, PART_BYTES + 1):
        path = tmp_path / "file"
        path.write_bytes(b"x" * size)
        stored = objects.put_file(path)
        objects.fetch(stored.sha256, size, tmp_path / f"copy-{size}", stored.version)
        assert contract.hash_file(tmp_path / f"copy-{size}") == (stored.sha256, size)


@pytest.mark.parametrize("size", [5, LARGE])
def test_put_again_is_verified_and_makes_no_second_version(
    objects: S3Objects, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size))
    first = objects.put_file(path)
    assert objects.put_file(path) == first
    versions = objects.client.list_object_versions(Bucket=objects.place.bucket)["Versions"]
    assert len(versions) == 1
    assert uploads(objects) == []


@pytest.mark.parametrize("size", [5, LARGE])
def test_other_bytes_under_the_name_are_never_taken_for_stored(
    objects: S3Objects, server: BucketServer, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * size)
    stored = objects.put_file(path)
    server.harm(objects, stored.sha256, b"b" * size)  # the same size
    with pytest.raises(ObjectFault, match="has the hash") as caught:
        objects.put_file(path)
    assert caught.value.kind == "corrupt"


def test_eight_writers_of_one_object_make_one_version(objects: S3Objects) -> None:
    data, found = os.urandom(1 << 16), list[Stored]()
    threads = [
        threading.Thread(target=lambda: found.append(objects.put_bytes(data))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = objects.client.list_object_versions(Bucket=objects.place.bucket)["Versions"]
    assert len(found) == 8 and len(versions) == 1
    assert {one.version for one in found} == {versions[0]["VersionId"]}


def test_a_conflict_while_putting_is_tried_again(objects: S3Objects, server: BucketServer) -> None:
    server.rules.append(refuse(409, "ConditionalRequestConflict", method="PUT", times=2))
    assert objects.put_bytes(b"hello").version
    assert Counter(server.seen)["PUT "] == 4  # the bucket, two refusals, the object


def test_a_conflict_at_the_end_of_an_upload_sends_all_parts_again(
    objects: S3Objects, server: BucketServer, tmp_path: Path
) -> None:
    path = large_file(tmp_path)
    server.rules.append(refuse(409, "ConditionalRequestConflict", method="POST", after=1, times=1))
    stored = objects.put_file(path)
    sent = [each for each in server.seen if "partNumber" in each]
    assert len(sent) == 6 and len({each.split("&")[0] for each in sent}) == 2
    objects.fetch(stored.sha256, LARGE, tmp_path / "copy", stored.version)
    assert uploads(objects) == []


def test_another_writer_who_ends_first_wins_and_nothing_is_left_behind(
    objects: S3Objects, server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_file(tmp_path)
    other = open_objects(objects.place.address())
    winner: list[Stored] = []

    def overtake(environ: dict[str, Any]) -> None:
        if environ["REQUEST_METHOD"] == "PUT" and "partNumber=3" in environ["QUERY_STRING"]:
            server.rules.clear()
            with monkeypatch.context() as patch:  # another machine
                patch.setattr(multipart, "record_folder", lambda: tmp_path / "elsewhere")
                winner.append(other.put_file(path))

    server.rules.append(overtake)
    stored = objects.put_file(path)
    assert stored == winner[0]
    versions = objects.client.list_object_versions(Bucket=objects.place.bucket)["Versions"]
    assert len(versions) == 1
    assert uploads(objects) == []


def test_a_file_that_changes_while_it_is_sent_is_refused_and_cleaned_up(
    objects: S3Objects, server: BucketServer, tmp_path: Path
) -> None:
    path = large_file(tmp_path)

    def change(environ: dict[str, Any]) -> None:
        if "uploads" in environ["QUERY_STRING"]:
            with open(path, "r+b") as handle:
                handle.write(b"other")

    server.rules.append(change)
    with pytest.raises(ObjectFault, match="changed while it was stored"):
        objects.put_file(path)
    assert uploads(objects) == [] and list(objects.list()) == []


PUT = """
import pathlib, sys
from harness.onhost import multipart
from harness.onhost.objects import open_objects
multipart.PART_BYTES = 5 << 20
open_objects(sys.argv[1]).put_file(pathlib.Path(sys.argv[2]))
"""


def test_a_killed_upload_goes_on_with_the_parts_that_arrived(
    objects: S3Objects, server: BucketServer, tmp_path: Path
) -> None:
    path = large_file(tmp_path)
    arrived, victim = threading.Event(), list[subprocess.Popen[bytes]]()

    def kill(environ: dict[str, Any]) -> None:
        if "partNumber=3" in environ["QUERY_STRING"]:
            assert arrived.wait(120)
            victim[0].send_signal(signal.SIGKILL)
            victim[0].wait()

    server.rules.append(kill)
    argv = [sys.executable, "-c", PUT, objects.place.address(), str(path)]
    victim.append(subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(ROOT)}))
    wait_for_parts(objects, 2)
    arrived.set()
    assert victim[0].wait(60) == -signal.SIGKILL
    server.rules.clear()
    before = {part["PartNumber"] for part in parts(objects)}
    server.seen.clear()
    objects.put_file(path)
    sent = {int(each.split("partNumber=")[1][0]) for each in server.seen if "partNumber" in each}
    assert sent | before == {1, 2, 3} and not sent & before
    assert uploads(objects) == []
    assert list(multipart.record_folder().glob("*.json")) == []


def test_two_uploads_of_one_file_from_one_machine_send_it_once(
    objects: S3Objects, server: BucketServer, tmp_path: Path
) -> None:
    path, found = large_file(tmp_path), list[Stored]()
    threads = [
        threading.Thread(target=lambda: found.append(objects.put_file(path))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert len([each for each in server.seen if "partNumber" in each]) == 3


def parts(objects: S3Objects) -> list[Any]:
    return [
        part
        for upload in uploads(objects)
        for part in objects.client.list_parts(
            Bucket=objects.place.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
        ).get("Parts", [])
    ]


def wait_for_parts(objects: S3Objects, count: int) -> None:
    pause = threading.Event()
    for _ in range(600):
        if len(parts(objects)) >= count:
            return
        pause.wait(0.1)
    raise AssertionError("the parts never arrived")


def test_a_remembered_upload_that_is_gone_begins_anew(
    objects: S3Objects, server: BucketServer, tmp_path: Path
) -> None:
    path = large_file(tmp_path)
    server.rules.append(refuse(403, "ExpiredToken", method="PUT", query="partNumber=3"))
    with pytest.raises(StoreFault, match="credentials expired"):
        objects.put_file(path)
    server.rules.clear()
    for upload in uploads(objects):  # the bucket's lifecycle rule
        objects.client.abort_multipart_upload(
            Bucket=objects.place.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
        )
    assert objects.put_file(path).bytes == LARGE


def test_part_sizes_are_the_same_for_the_same_size_and_never_too_many() -> None:
    assert multipart.part_bytes(1) == multipart.PART_BYTES
    for size in (1, LARGE, 200 << 30, 5 << 40):
        part = multipart.part_bytes(size)
        assert -(-size // part) <= multipart.MOST_PARTS and part % multipart.PART_BYTES == 0
