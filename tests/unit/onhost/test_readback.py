"""Staging and reading back through the command line: every byte counts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.onhost import stage
from harness.onhost.command import Fault
from harness.onhost.objects import FolderObjects, ObjectFault
from trainer import contract


@pytest.fixture
def stored(kit: Any, tmp_path: Path) -> tuple[str, Path]:
    """(address, listing file) of three stored files, one of them empty, two with the same bytes."""
    source = tmp_path / "source"
    (source / "inner").mkdir(parents=True)
    (source / "a").write_bytes(bytes(range(256)) * 40000)
    (source / "inner" / "b").write_bytes(b"")
    (source / "inner" / "c").write_bytes(b"")
    address = json.dumps({"kind": "folder", "path": str(tmp_path / "store")})
    done = kit.helper("stage", "put", "--store", address, "--folder", source)
    assert done.returncode == 0, done.stderr
    listing = tmp_path / "listing.json"
    listing.write_text(done.stdout)
    return address, listing


def broken(tmp_path: Path, listing: Path) -> Path:
    row = json.loads(listing.read_text())[0]
    path = FolderObjects(tmp_path / "store").path_of(row["sha256"])
    path.chmod(0o644)
    return path


def read(kit: Any, stored: tuple[str, Path]) -> tuple[int, Any]:
    done = kit.helper("readback", "--store", stored[0], "--listing", stored[1])
    return done.returncode, json.loads(done.stdout)


def test_a_whole_store_is_read_by_another_process(kit: Any, stored: tuple[str, Path]) -> None:
    status, result = read(kit, stored)
    assert status == 0
    assert [row["name"] for row in result["objects"]] == ["a", "inner/b", "inner/c"]
    assert all(row["ok"] and row["fault"] is None for row in result["objects"])
    assert result["totals"] == {
        "objects": 3, "bytes": 10240000, "missing": 0, "truncated": 0, "corrupt": 0,
        "replaced": 0,
    }  # fmt: skip
    assert result["pid"] != os.getpid()
    assert result["started_utc"] <= result["finished_utc"]


@pytest.mark.parametrize("place", [0, 1234567, 10239999])
@pytest.mark.parametrize("bit", [0, 7])
def test_one_flipped_bit_is_found(
    kit: Any, stored: tuple[str, Path], tmp_path: Path, place: int, bit: int
) -> None:
    with open(broken(tmp_path, stored[1]), "r+b") as handle:
        handle.seek(place)
        byte = handle.read(1)[0]
        handle.seek(place)
        handle.write(bytes([byte ^ (1 << bit)]))
    status, result = read(kit, stored)
    assert (status, result["objects"][0]["fault"]) == (5, "corrupt")
    assert result["totals"]["corrupt"] == 1


def test_missing_truncated_and_grown_are_told_apart(
    kit: Any, stored: tuple[str, Path], tmp_path: Path
) -> None:
    path = broken(tmp_path, stored[1])
    os.truncate(path, 10239999)
    assert read(kit, stored)[1]["objects"][0]["fault"] == "truncated"
    os.truncate(path, 10240001)
    assert read(kit, stored)[1]["objects"][0]["fault"] == "corrupt"
    path.unlink()
    status, result = read(kit, stored)
    assert (status, result["objects"][0]["fault"]) == (5, "missing")
    assert [row["ok"] for row in result["objects"]] == [False, True, True]


def test_get_makes_the_folder_whole_and_skips_only_by_content(
    kit: Any, stored: tuple[str, Path], tmp_path: Path
) -> None:
    address, listing = stored
    folder = tmp_path / "target"
    get = ("stage", "get", "--store", address, "--listing", listing, "--folder", folder)
    assert json.loads(kit.helper(*get).stdout)["moved_bytes"] == 10240000
    assert json.loads(kit.helper(*get).stdout)["skipped"]
    data = bytearray((folder / "a").read_bytes())
    data[5] ^= 1  # the same size
    (folder / "a").write_bytes(data)
    (folder / "stray").touch()
    assert not json.loads(kit.helper(*get).stdout)["skipped"]
    assert contract.hash_file(folder / "a")[0] == json.loads(listing.read_text())[0]["sha256"]
    assert sorted(p.name for p in folder.rglob("*")) == ["a", "b", "c", "inner"]


def test_get_of_a_corrupt_object_changes_nothing(
    kit: Any, stored: tuple[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "target"
    folder.mkdir()
    (folder / "old").write_text("kept")
    with open(broken(tmp_path, stored[1]), "r+b") as handle:
        handle.write(b"\xff")
    before = set(tmp_path.iterdir())
    done = kit.helper(
        "stage", "get", "--store", stored[0], "--listing", stored[1], "--folder", folder
    )
    assert done.returncode == 5 and "has the hash" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (folder / "old").read_text() == "kept"
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "", ".", "a\0"])
def test_a_listing_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    listing = tmp_path / "listing.json"
    contract.write_json(listing, [{"name": name, "sha256": "0" * 64, "bytes": 0}])
    with pytest.raises(Fault, match=r"#/0/name: .* leaves the folder"):
        stage.read_listing(listing)


def test_only_plain_files_are_stored(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "link").symlink_to("/etc/passwd")
    with pytest.raises(Fault, match="only plain files are stored"):
        stage.put(FolderObjects(tmp_path / "store"), source)


def test_staging_without_room_says_so_before_it_copies(tmp_path: Path) -> None:
    rows = [stage.Listed("a", "0" * 64, 1 << 60)]
    with pytest.raises(Fault, match="staging needs 1152921504606846976"):
        stage.get(FolderObjects(tmp_path / "store"), rows, tmp_path / "target")


def test_another_kind_of_store_is_named(kit: Any, tmp_path: Path) -> None:
    done = kit.helper("stage", "put", "--store", '{"kind":"tape"}', "--folder", tmp_path)
    assert (done.returncode, done.stderr) == (2, "this helper knows no store of the kind 'tape'.\n")


def test_a_hash_is_not_a_path(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="is not a SHA-256"):
        FolderObjects(tmp_path).path_of("../" * 21 + "a")
    with pytest.raises(ObjectFault):
        list(FolderObjects(tmp_path).chunks("0" * 64))
