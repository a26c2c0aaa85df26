"""Extraction: what is not exactly what was sealed is refused, and nothing is left behind."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import BadInput
from harness.seal import Caps, extract, seal
from harness.seal.header import END
from tests.unit.seal.crafted import (
    FILES,
    around_deflate,
    entry,
    foreign_tar,
    in_envelope,
    index_of,
    tar_of,
    write_folder,
)
from trainer import contract


def refused(archive: Path, *, expected: str | None = None, **caps: int) -> str:
    """The sentence that extraction refuses with; nothing may be left."""
    before = sorted(archive.parent.iterdir())
    with pytest.raises(BadInput) as error:
        extract(archive, archive.parent / "out", expected_tar_sha256=expected, caps=Caps(**caps))
    assert sorted(archive.parent.iterdir()) == before
    assert error.value.where == str(archive)
    return error.value.what


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A good archive."""
    path = tmp_path / "a.tar.gz"
    seal(write_folder(tmp_path / "in"), path)
    return path


class TestGood:
    def test_gives_back_every_file_and_mode(self, tmp_path: Path, archive: Path) -> None:
        index = extract(archive, tmp_path / "out", expected_tar_sha256=None)
        found = {
            p.relative_to(tmp_path / "out").as_posix(): p.read_bytes()
            for p in (tmp_path / "out").rglob("*")
            if p.is_file()
        }
        assert found.pop("index.json") == index.data()
        assert found == FILES
        assert (tmp_path / "out" / "launch").stat().st_mode & 0o777 == 0o755
        assert (tmp_path / "out" / "a").stat().st_mode & 0o777 == 0o644

    def test_an_empty_folder_may_be_there(self, tmp_path: Path, archive: Path) -> None:
        (tmp_path / "out").mkdir()
        extract(archive, tmp_path / "out", expected_tar_sha256=None)
        assert (tmp_path / "out" / "plan.json").read_bytes() == b"{}\n"

    def test_a_folder_with_something_in_it_is_left_alone(
        self, tmp_path: Path, archive: Path
    ) -> None:
        write_folder(tmp_path / "out", {"mine": b"1"})
        with pytest.raises(BadInput, match="is not an empty folder"):
            extract(archive, tmp_path / "out", expected_tar_sha256=None)
        assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine"]

    def test_a_link_in_the_folders_place_is_not_followed(
        self, tmp_path: Path, archive: Path
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(BadInput, match="is not an empty folder"):
            extract(archive, tmp_path / "out", expected_tar_sha256=None)
        assert not any((tmp_path / "elsewhere").iterdir())

    def test_a_tar_that_was_not_expected(self, archive: Path) -> None:
        assert "not " + "0" * 64 in refused(archive, expected="0" * 64)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        assert "cannot be extracted" in refused(tmp_path / "none.tar.gz")


KINDS = {
    "a link": b"2", "a hard link": b"1", "a device": b"3", "a pipe": b"6", "a folder": b"5",
    "a sparse file": b"S", "a GNU long name": b"L", "a global pax header": b"g",
    'of the type "7"': b"7",
}  # fmt: skip


class TestForeignMembers:
    def test_the_unchanged_one_is_no_fault(self, tmp_path: Path) -> None:
        archive = in_envelope(tmp_path / "a", foreign_tar())
        extract(archive, tmp_path / "out", expected_tar_sha256=None)

    @pytest.mark.parametrize("what", KINDS)
    def test_kinds_that_are_no_plain_file(self, tmp_path: Path, what: str) -> None:
        tar = foreign_tar(type=KINDS[what], linkname=b"/etc/passwd")
        assert f'"x" is {what}' in refused(in_envelope(tmp_path / "a", tar))

    @pytest.mark.parametrize(
        ("field", "value"),
        [("mtime", b"00000000001"), ("uid", b"0000001"), ("gid", b"0000001"), ("uname", b"root"),
         ("gname", b"g"), ("mode", b"0000600"), ("mode", b"0004755"), ("linkname", b"y"),
         ("devmajor", b"0000001"), ("rest", b"1"), ("magic", b"ustar "), ("name", b"x\0y"),
         ("prefix", b"\0p"), ("version", b"01")],
    )  # fmt: skip
    def test_headers_that_say_more_than_they_may(
        self, tmp_path: Path, field: str, value: bytes
    ) -> None:
        tar = foreign_tar(**{field: value})
        what = refused(in_envelope(tmp_path / "a", tar))
        assert "normal form" in what or "control character" in what

    @pytest.mark.parametrize("size", [b"0000000005 ", b"5", b"-0000000005", b"\x80" + bytes(10)])
    def test_sizes_that_are_no_eleven_octal_digits(self, tmp_path: Path, size: bytes) -> None:
        assert "octal digits" in refused(in_envelope(tmp_path / "a", foreign_tar(size=size)))

    def test_a_wrong_checksum(self, tmp_path: Path) -> None:
        tar = foreign_tar().replace(b"ustar", b"vstar")
        assert "checksum is wrong" in refused(in_envelope(tmp_path / "a", tar))

    @pytest.mark.parametrize(
        ("name", "fault"),
        [("/x", "is absolute"), ("../x", "has '..' in it"), ("a/../../x", "has '..' in it"),
         ("./x", "an empty part or '.'"), ("a//x", "an empty part or '.'"),
         ("a\\x", "a backslash"), ("a\nx", "control character"), ("y", "stands where")],
    )  # fmt: skip
    def test_names_in_headers(self, tmp_path: Path, name: str, fault: str) -> None:
        tar = foreign_tar(name=name.encode())
        assert fault in refused(in_envelope(tmp_path / "a", tar))
        assert not (tmp_path.parent / "x").exists()

    @pytest.mark.parametrize(
        ("name", "fault"),
        [("/x", "is absolute"), ("../x", "has '..' in it"), ("é" * 200 + "/../x", "has '..'"),
         ("x/", "an empty part"), ("", "an empty part"), ("p" * 256, "part longer than"),
         ("d/" * 64 + "x", "or 64 parts"), ("index.json", "appears twice")],
    )  # fmt: skip
    def test_names_in_the_index(self, tmp_path: Path, name: str, fault: str) -> None:
        tar = entry("index.json", index_of({name: b"1"})) + END
        assert fault in refused(in_envelope(tmp_path / "a", tar))


class TestIndex:
    def test_two_names_that_collide(self, tmp_path: Path) -> None:
        pairs = [("e\u0301", "\u00e9", "one in NFC"), ("a", "a/b", "both a file and a folder")]
        for number, (one, two, fault) in enumerate(pairs):
            tar = tar_of({one: b"1", two: b"2"})
            assert fault in refused(in_envelope(tmp_path / str(number), tar))

    def test_a_name_twice(self, tmp_path: Path) -> None:
        once = contract.parse(index_of({"a": b"1"}))
        twice = contract.canonical(once | {"members": once["members"] * 2}) + b"\n"
        tar = entry("index.json", twice) + entry("a", b"1") * 2 + END
        assert '"a" appears twice' in refused(in_envelope(tmp_path / "a", tar))

    @pytest.mark.parametrize(
        ("index", "fault"),
        [(b"", "is not JSON"), (b"{}", "is missing"), (b'{"a":1,"a":1}', "twice"),
         (index_of({"x": b"1"}) + b" ", "not canonical"), (b"[" * 100_000, "nested")],
    )  # fmt: skip
    def test_an_index_that_is_none(self, tmp_path: Path, index: bytes, fault: str) -> None:
        tar = tar_of({"x": b"1"}, index=index)
        assert fault in refused(in_envelope(tmp_path / "a", tar))

    def test_no_index_or_not_first(self, tmp_path: Path) -> None:
        for number, tar in enumerate((entry("x", b"1") + END, END, b"")):
            what = refused(in_envelope(tmp_path / str(number), tar))
            assert any(part in what for part in ("not index.json", "ends before", "in the middle"))

    def test_members_out_of_order(self, tmp_path: Path) -> None:
        assert "out of order" in refused(in_envelope(tmp_path / "a", tar_of({"b": b"", "a": b""})))

    def test_a_member_that_is_missing_from_the_index(self, tmp_path: Path) -> None:
        tar = tar_of({"a": b"1", "b": b"2"}, index=index_of({"a": b"1"}))
        assert '"b" is not in index.json' in refused(in_envelope(tmp_path / "a", tar))

    def test_a_member_that_is_missing_from_the_tar(self, tmp_path: Path) -> None:
        tar = tar_of({"a": b"1"}, index=index_of({"a": b"1", "b": b"2"}))
        assert "before its last member" in refused(in_envelope(tmp_path / "a", tar))

    @pytest.mark.parametrize("data", [b"12346", b"1234", b"123456"])
    def test_a_member_that_differs(self, tmp_path: Path, data: bytes) -> None:
        tar = tar_of({"a": data}, index=index_of({"a": b"12345"}))
        assert '"a"' in refused(in_envelope(tmp_path / "a", tar))

    def test_an_executable_that_the_index_does_not_call_one(self, tmp_path: Path) -> None:
        tar = foreign_tar(mode=b"0000755")
        assert "another size or mode" in refused(in_envelope(tmp_path / "a", tar))


class TestBombs:
    ZEROS = tar_of({"zeros": bytes(1_000_000)})

    @pytest.mark.parametrize(
        ("caps", "fault"),
        [({"ratio": 100, "ratio_from_bytes": 1000}, "more than 100 times"),
         ({"total_bytes": 999_999}, "cap of 999999"), ({"total_bytes": 500}, "more than 500 bytes"),
         ({"member_bytes": 999_999}, "cap of 999999"), ({"members": 0}, "over the cap of 0"),
         ({"index_bytes": 10}, "over the cap of 10")],
    )  # fmt: skip
    def test_over_a_cap(self, tmp_path: Path, caps: dict[str, Any], fault: str) -> None:
        assert fault in refused(in_envelope(tmp_path / "a", self.ZEROS), **caps)

    def test_a_name_record_of_many_bytes(self, tmp_path: Path) -> None:
        data = entry("index.json", index_of({"x": b""})) + entry("é" * 200, b"")
        at = data.index(b"pax_header")
        block = bytearray(data[at : at + 512])
        block[124:136] = b"00077777777\0"
        block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:]))
        what = refused(in_envelope(tmp_path / "a", data[:at] + bytes(block) + bytes(4096)))
        assert "over the cap of 4096" in what


class TestEnvelope:
    def test_every_truncation_is_found(self, tmp_path: Path) -> None:
        whole = in_envelope(tmp_path / "whole", tar_of({"a": b"1"})).read_bytes()
        for length in range(len(whole)):
            (tmp_path / "cut").write_bytes(whole[:length])
            assert "is truncated" in refused(tmp_path / "cut")

    def test_bytes_after_the_end(self, tmp_path: Path, archive: Path) -> None:
        archive.write_bytes(archive.read_bytes() + b"\0")
        assert "has bytes after its end" in refused(archive)

    @pytest.mark.parametrize("more", [b"\0", bytes(512), entry("b", b"2"), b"garbage" * 100])
    def test_bytes_after_the_end_of_the_tar(self, tmp_path: Path, more: bytes) -> None:
        tar = tar_of({"a": b"1"}) + more
        assert "goes on after its end" in refused(in_envelope(tmp_path / "a", tar))

    def test_compressed_data_that_go_on_or_do_not_end(self, tmp_path: Path) -> None:
        tar = tar_of({"a": b"1"})
        deflate = zlib.compressobj(wbits=-15)
        open_ended = deflate.compress(tar) + deflate.flush(zlib.Z_SYNC_FLUSH)
        ended = open_ended + deflate.flush()
        good = around_deflate(tmp_path / "good", ended, tar)
        extract(good, tmp_path / "good-out", expected_tar_sha256=None)
        for number, data in enumerate((ended + b"\0", ended + bytes(1 << 21), open_ended)):
            what = refused(around_deflate(tmp_path / str(number), data, tar))
            assert "do not end where the archive ends" in what
        assert "damaged" in refused(around_deflate(tmp_path / "x", b"\xff" * 99, tar))

    def test_a_checksum_of_other_bytes(self, tmp_path: Path) -> None:
        tar = tar_of({"a": b"1"})
        deflate = zlib.compressobj(wbits=-15)
        data = deflate.compress(tar) + deflate.flush()
        archive = around_deflate(tmp_path / "a", data, tar + b"more")
        assert "checksum at the end" in refused(archive)

    def test_a_tar_without_its_last_block(self, tmp_path: Path) -> None:
        tar = tar_of({"a": b"1"})[:-512]
        assert "in the middle" in refused(in_envelope(tmp_path / "a", tar))

    def test_bytes_between_members(self, tmp_path: Path) -> None:
        tar = bytearray(tar_of({"a": b"1"}))
        tar[-1025] = 1
        assert "bytes between two members" in refused(in_envelope(tmp_path / "a", bytes(tar)))

    @pytest.mark.parametrize("make", [gzip.compress, lambda tar: tar, lambda tar: b"PK\3\4" + tar])
    def test_another_format(self, tmp_path: Path, make: Callable[[bytes], bytes]) -> None:
        (tmp_path / "a").write_bytes(make(tar_of({"a": b"1"})))
        assert "not an archive of Harness" in refused(tmp_path / "a")

    SMALL = tar_of({"a": b"1", "b/\u00e9": b"2" * 600})

    @settings(
        max_examples=400, deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )  # fmt: skip
    @given(st.data())
    def test_one_changed_byte_anywhere_is_found(self, tmp_path: Path, data: st.DataObject) -> None:
        whole = bytearray(in_envelope(tmp_path / "whole", self.SMALL).read_bytes())
        at = data.draw(st.integers(0, len(whole) - 1), "offset")
        whole[at] ^= data.draw(st.integers(1, 255), "mask")
        (tmp_path / "bad").write_bytes(whole)
        refused(tmp_path / "bad")

    @settings(
        max_examples=400, deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )  # fmt: skip
    @given(st.data())
    def test_one_changed_byte_of_the_tar_in_a_new_envelope_is_found(
        self, tmp_path: Path, data: st.DataObject
    ) -> None:
        tar = bytearray(self.SMALL)
        at = data.draw(st.integers(0, len(tar) - 1), "offset")
        tar[at] ^= data.draw(st.integers(1, 255), "mask")
        in_envelope(tmp_path / "bad", bytes(tar))
        refused(tmp_path / "bad")

    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.binary(max_size=4096))
    def test_any_bytes_in_an_envelope_are_refused(self, tmp_path: Path, tar: bytes) -> None:
        refused(in_envelope(tmp_path / "bad", tar))
