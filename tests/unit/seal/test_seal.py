"""Sealing: the same files give the same bytes, and what an archive cannot hold is refused."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import harness
from harness.errors import BadInput
from harness.seal import Caps, Index, Sealed, extract, seal
from harness.snapshot import write_snapshot
from harness.strict import load
from tests.unit.seal.crafted import FILES, write_folder
from trainer import contract

BUILD = """
import os, sys, time
from pathlib import Path
from harness.seal import seal
from tests.unit.seal.crafted import FILES, write_folder

folder, archive, umask, backwards = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
os.umask(int(umask, 8))
order = sorted(FILES.items(), reverse=backwards == "yes")
write_folder(folder, dict(order))
for number, path in enumerate(path for path in folder.rglob("*") if path.is_file()):
    os.utime(path, (number * 1e6, 1e9 + number))
(folder / "deep").chmod(0o700)
print(seal(folder, archive))
"""


def build(tmp: Path, name: str, *, umask: str, backwards: str, **environment: str) -> bytes:
    """Seal the same files in a process of its own; the archive's bytes."""
    archive = tmp / f"{name}.tar.gz"
    root = Path(harness.__file__).parent.parent
    subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp / name), str(archive), umask, backwards],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root), **environment},
        check=True,
        capture_output=True,
    )
    return archive.read_bytes()


class TestSameBytes:
    def test_whatever_mask_locale_zone_order_and_times(self, tmp_path: Path) -> None:
        first = build(tmp_path, "one", umask="022", backwards="no", LC_ALL="C.UTF-8", TZ="UTC")
        second = build(
            tmp_path, "two", umask="077", backwards="yes", LC_ALL="C", TZ="Asia/Tokyo",
            PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONHASHSEED="7",
        )  # fmt: skip
        assert first == second

    def test_an_archive_extracted_and_sealed_again_is_the_same(self, tmp_path: Path) -> None:
        sealed = seal(write_folder(tmp_path / "in"), tmp_path / "a.tar.gz")
        extract(tmp_path / "a.tar.gz", tmp_path / "out", expected_tar_sha256=sealed.tar_sha256)
        assert seal(tmp_path / "out", tmp_path / "b.tar.gz") == sealed
        assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()

    def test_golden_identity(self, tmp_path: Path) -> None:
        """The format itself: a change of this hash is a new format and needs a new schema."""
        sealed = seal(write_folder(tmp_path / "in"), tmp_path / "a.tar.gz")
        assert sealed.tar_sha256 == GOLDEN

    def test_a_changed_byte_mode_or_name_is_another_archive(self, tmp_path: Path) -> None:
        found = set()
        for number, change in enumerate(("byte", "mode", "name", "none")):
            folder = write_folder(tmp_path / change)
            if change == "byte":
                (folder / "a").write_bytes(b"lowes")
            elif change == "mode":
                (folder / "a").chmod(0o744)
            elif change == "name":
                (folder / "a").rename(folder / "b")
            found.add(seal(folder, tmp_path / f"{number}.tar.gz").tar_sha256)
        assert len(found) == 4


GOLDEN = "bb336608c2d86e1a4974ebffc6570ef8ea12ffd7302cabf6a644f1eab64d8db8"


class TestForm:
    @pytest.fixture
    def sealed(self, tmp_path: Path) -> Sealed:
        return seal(write_folder(tmp_path / "in"), tmp_path / "a.tar.gz")

    def test_figures_are_those_of_the_files(self, tmp_path: Path, sealed: Sealed) -> None:
        data = (tmp_path / "a.tar.gz").read_bytes()
        tar = gzip.decompress(data)
        assert (sealed.gzip_sha256, sealed.gzip_bytes) == (contract.sha256(data), len(data))
        assert (sealed.tar_sha256, sealed.tar_bytes) == (contract.sha256(tar), len(tar))
        assert sealed.members == len(FILES)

    def test_other_programs_read_it(self, tmp_path: Path, sealed: Sealed) -> None:
        with tarfile.open(tmp_path / "a.tar.gz") as tar:
            members = tar.getmembers()
            found = {m.name: tar.extractfile(m).read() for m in members}  # type: ignore[union-attr]
        index = found.pop("index.json")
        assert found == FILES and contract.sha256(index) == sealed.index_sha256
        assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, 0, "", "")}
        assert {m.name for m in members if m.mode == 0o755} == {"launch"}
        listed = subprocess.run(
            ["tar", "-tzf", str(tmp_path / "a.tar.gz"), "--quoting-style=literal"],
            check=True, capture_output=True,
        ).stdout.decode()  # fmt: skip
        assert listed.splitlines() == ["index.json", *sorted(FILES, key=str.encode)]

    def test_gzip_has_no_name_and_no_time(self, tmp_path: Path, sealed: Sealed) -> None:
        assert (tmp_path / "a.tar.gz").read_bytes()[:10] == b"\x1f\x8b\x08\x04\0\0\0\0\0\xff"

    def test_the_index_comes_first_and_binds_every_member(
        self, tmp_path: Path, sealed: Sealed
    ) -> None:
        with tarfile.open(tmp_path / "a.tar.gz") as tar:
            first = tar.next()
            assert first is not None and first.name == "index.json"
            data = tar.extractfile(first).read()  # type: ignore[union-attr]
        index = load(Index, data, where="index.json")
        rows = {m.path: (m.sha256, m.bytes, m.mode) for m in index.members}
        assert list(rows) == sorted(FILES, key=str.encode)
        assert rows["launch"] == (contract.sha256(b"#!/bin/sh\n"), 10, "755")

    def test_nothing_but_the_archive_is_left(self, tmp_path: Path, sealed: Sealed) -> None:
        assert {path.name for path in tmp_path.iterdir()} == {"in", "a.tar.gz"}


class TestRefusals:
    def refused(self, folder: Path, **caps: int) -> str:
        archive = folder.parent / "refused.tar.gz"
        with pytest.raises(BadInput) as error:
            seal(folder, archive, caps=Caps(**caps))
        assert [p.name for p in folder.parent.iterdir()] == [folder.name]
        return str(error.value)

    def test_links_to_files_and_folders(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "in")
        (folder / "link").symlink_to("plan.json")
        assert '"link" is a link' in self.refused(folder)
        (folder / "link").unlink()
        (folder / "link").symlink_to(folder / "models")
        assert '"link" is a link' in self.refused(folder)

    def test_pipes_and_sockets(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "in")
        os.mkfifo(folder / "pipe")
        assert '"pipe" is not a plain file' in self.refused(folder)
        (folder / "pipe").unlink()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(folder / "s"))
            assert '"s" is not a plain file' in self.refused(folder)

    def test_names_that_are_one_in_nfc(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "in", {"\u00e9": b"1", "e\u0301": b"2"})
        assert "are one in NFC" in self.refused(folder)

    def test_folders_that_are_one_in_nfc(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "in", {"\u00e9/a": b"1", "e\u0301/b": b"2"})
        assert "are one in NFC" in self.refused(folder)

    @pytest.mark.parametrize("name", [b"\xff", b"a\nb", b"a\\b", b"\x7f"])
    def test_names_that_are_no_plain_text(self, tmp_path: Path, name: bytes) -> None:
        folder = write_folder(tmp_path / "in", {"a": b""})
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(b"")
        assert "name" in self.refused(folder)

    def test_an_index_that_is_not_its_own(self, tmp_path: Path) -> None:
        assert "own index" in self.refused(write_folder(tmp_path / "in", {"index.json": b"{}"}))

    def test_too_many_members_or_bytes(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "in", {"a": b"12345", "b": b"12345"})
        assert "over the cap of 1" in self.refused(folder, members=1)
        assert "over the cap of 4" in self.refused(folder, member_bytes=4)
        assert "over the cap of 9" in self.refused(folder, total_bytes=9)
        assert "over the cap of 20" in self.refused(folder, index_bytes=20)
        assert "expands more than 2 times" in self.refused(folder, ratio=2, ratio_from_bytes=100)

    def test_an_archive_inside_its_own_folder(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "in")
        with pytest.raises(BadInput, match="would lie in the folder"):
            seal(folder, folder / "deep" / "a.tar.gz")

    def test_no_folder_and_no_place_to_write(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="is not a folder"):
            seal(tmp_path / "none", tmp_path / "a.tar.gz")
        with pytest.raises(BadInput, match="cannot be written"):
            seal(write_folder(tmp_path / "in"), tmp_path / "none" / "a.tar.gz")

    @pytest.mark.parametrize("after", [b"lowe", b"lowes", b"lower+"])
    def test_a_file_that_changes_meanwhile(
        self, tmp_path: Path, after: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = write_folder(tmp_path / "in")

        def index_then_change(self: Index) -> bytes:
            (folder / "a").write_bytes(after)
            return contract.canonical(self.to_json()) + b"\n"

        monkeypatch.setattr(Index, "data", index_then_change)
        assert '"a" changed while it was sealed' in self.refused(folder)


def test_the_program_s_own_snapshot_has_the_same_bytes_under_any_umask(tmp_path: Path) -> None:
    made = []
    for umask in (0o022, 0o077):
        before = os.umask(umask)
        try:
            write_snapshot(tmp_path / f"{umask}.tar", tmp_path / "work")
        finally:
            os.umask(before)
        made.append((tmp_path / f"{umask}.tar").read_bytes())
    assert made[0] == made[1]
    assert not (tmp_path / "work").exists()
