"""Readback from a bucket by the helper's own process: every fault is caught, and told apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.onhost import readback, stage
from harness.onhost.objects import open_objects
from harness.onhost.ranges import PART_BYTES
from harness.onhost.s3objects import S3Objects
from tests.unit.store.bucket_server import BucketServer, refuse

ROOT = Path(__file__).resolve().parents[3]
LARGE = 100_000


def helper(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"harness.onhost.{module}", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def listing(objects: S3Objects, tmp_path: Path) -> Path:
    """Three stored files: one large, one small, one empty."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_bytes(os.urandom(LARGE))
    (source / "b").write_bytes(b"small")
    (source / "c").write_bytes(b"")
    path = tmp_path / "listing.json"
    path.write_text(json.dumps([row.row() for row in stage.put(objects, source)]))
    return path


def rows(listing: Path) -> list[dict[str, Any]]:
    return list(json.loads(listing.read_text()))


def read(objects: S3Objects, listing: Path) -> tuple[int, Any]:
    """(exit status that the program would give, what it prints)."""
    again = open_objects(objects.place.address())
    found = readback.readback(again, stage.read_listing(listing))
    return 0 if all(row["ok"] for row in found["objects"]) else 5, found


def test_whole_objects_are_read_in_their_versions_by_another_process(
    objects: S3Objects, listing: Path
) -> None:
    done = helper("readback", "--store", objects.place.address(), "--listing", listing)
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert all(row["ok"] for row in found["objects"])
    assert [row["version"] for row in found["objects"]] == [r["version"] for r in rows(listing)]
    assert found["totals"]["bytes"] == LARGE + 5
    assert found["pid"] != os.getpid()
    assert found["store"]["bucket"] == objects.place.bucket


def test_one_flipped_bit_is_found_wherever_it_is(
    objects: S3Objects, server: BucketServer, tmp_path: Path
) -> None:
    """In the first range, at a seam and in the last byte."""
    size = PART_BYTES + 12345
    stored = objects.put_bytes(os.urandom(size))
    rows = [{"name": "weights", **stored._asdict()}]
    (tmp_path / "listing.json").write_text(json.dumps(rows))
    whole = server.held(objects, stored.sha256)
    for place in (0, PART_BYTES, size - 1):
        data = bytearray(whole)
        data[place] ^= 1
        server.harm(objects, stored.sha256, bytes(data))
        status, found = read(objects, tmp_path / "listing.json")
        assert (status, found["objects"][0]["fault"]) == (5, "corrupt")
        assert found["objects"][0]["bytes"] == size and found["totals"]["corrupt"] == 1


def test_truncated_swapped_and_missing_are_told_apart(
    objects: S3Objects, server: BucketServer, listing: Path
) -> None:
    first, second, _ = rows(listing)
    server.harm(objects, first["sha256"], server.held(objects, first["sha256"])[:-1])
    server.harm(objects, second["sha256"], b"SMALL")
    status, found = read(objects, listing)
    assert status == 5
    assert [row["fault"] for row in found["objects"]] == ["truncated", "corrupt", None]
    objects.client.delete_object(
        Bucket=objects.place.bucket,
        Key=objects.place.key(first["sha256"]),
        VersionId=first["version"],
    )
    assert read(objects, listing)[1]["objects"][0]["fault"] == "missing"


def test_two_objects_that_changed_places_are_both_found(
    objects: S3Objects, server: BucketServer, tmp_path: Path
) -> None:
    source = tmp_path / "two"
    source.mkdir()
    (source / "a").write_bytes(b"first")
    (source / "b").write_bytes(b"other")
    put = [row.row() for row in stage.put(objects, source)]
    (tmp_path / "two.json").write_text(json.dumps(put))
    server.harm(objects, str(put[0]["sha256"]), b"other")
    server.harm(objects, str(put[1]["sha256"]), b"first")
    status, found = read(objects, tmp_path / "two.json")
    assert (status, found["totals"]["corrupt"]) == (5, 2)


def test_another_version_under_the_name_is_found_though_the_first_is_still_there(
    objects: S3Objects, listing: Path
) -> None:
    row = rows(listing)[1]
    key = objects.place.key(row["sha256"])
    objects.client.put_object(Bucket=objects.place.bucket, Key=key, Body=b"small")  # same bytes
    status, found = read(objects, listing)
    assert (status, found["objects"][1]["fault"]) == (5, "replaced")
    assert found["totals"]["replaced"] == 1
    objects.client.delete_object(Bucket=objects.place.bucket, Key=key)  # a delete marker
    assert read(objects, listing)[1]["objects"][1]["fault"] == "missing"


def test_a_version_that_was_never_there_is_missing(objects: S3Objects, listing: Path) -> None:
    changed = rows(listing)
    changed[1]["version"] = "11111111-2222-3333-4444-555555555555"
    listing.write_text(json.dumps(changed))
    assert read(objects, listing)[1]["objects"][1]["fault"] == "missing"


def test_a_store_that_stops_answering_gives_no_result(
    objects: S3Objects, server: BucketServer, listing: Path
) -> None:
    server.rules.append(refuse(403, "ExpiredToken", method="GET", after=1))
    done = helper("readback", "--store", objects.place.address(), "--listing", listing)
    assert done.returncode == 4 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def test_get_makes_a_folder_from_the_bucket_and_skips_only_by_content(
    objects: S3Objects, listing: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "target"
    get = ("stage", "get", "--store", objects.place.address(), "--listing", listing)
    first = helper(*get, "--folder", folder)
    assert json.loads(first.stdout)["moved_bytes"] == LARGE + 5
    assert json.loads(helper(*get, "--folder", folder).stdout)["skipped"]
    listed = stage.read_listing(listing)
    data = bytearray((folder / "a").read_bytes())
    data[7] ^= 1  # the same size
    (folder / "a").write_bytes(data)
    assert not stage.same(folder, listed)
    assert stage.get(objects, listed, folder) == LARGE + 5
    same = helper("stage", "same", "--listing", listing, "--folder", folder)
    assert json.loads(same.stdout) == {"same": True}
