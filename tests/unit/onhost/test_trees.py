"""Trees as one stream: what goes in comes out, and nothing else does."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.onhost import trees
from harness.onhost.command import Fault
from trainer import contract


def stream_of(path: Path) -> bytes:
    out = io.BytesIO()
    trees.pack(path, out.write)
    return out.getvalue()


def reader(data: bytes, most: int = 1 << 20) -> Callable[[int], bytes]:
    source = io.BytesIO(data)
    return lambda size: source.read(min(size, most))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    for name, data in {
        "text": b"a line\n" * 30_000, "weights": os.urandom(3 << 20), "empty": b"",
        "deep/er/file": b"x", "ä b": b"y", ".hidden": b"no", "__pycache__/a": b"no", "m.pyc": b"no",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "text").chmod(0o755)
    return folder


def test_names_are_those_of_the_contracts_listing(tree: Path) -> None:
    assert trees.names_in(tree) == [row["path"] for row in contract.tree_listing(tree)]


@pytest.mark.parametrize("most", [1 << 20, 7])
def test_a_tree_comes_out_as_it_went_in(tree: Path, tmp_path: Path, most: int) -> None:
    known = trees.hash_of(tree)
    assert known is not None
    data = stream_of(tree) if most > 7 else stream_of(small(tmp_path))
    there = tree if most > 7 else tmp_path / "small"
    found = trees.hash_of(there)
    assert found is not None
    moved = trees.unpack(reader(data, most), tmp_path / "out", found[0])
    assert (moved, trees.hash_of(tmp_path / "out")) == (found[1], found)


def small(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "one").write_bytes(b"1" * 1000)
    (folder / "two").write_bytes(os.urandom(1000))
    return folder


def test_text_is_packed_and_weights_are_not(tree: Path) -> None:
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    packed = len(stream_of(tree))
    assert (3 << 20) < packed < size - 150_000


def test_a_file_alone_and_an_empty_folder(tree: Path, tmp_path: Path) -> None:
    for source in (tree / "text", empty(tmp_path)):
        found = trees.hash_of(source)
        assert found is not None
        target = tmp_path / "out" / source.name
        trees.unpack(reader(stream_of(source)), target, found[0])
        assert trees.hash_of(target) == found


def empty(tmp_path: Path) -> Path:
    (tmp_path / "nothing").mkdir()
    return tmp_path / "nothing"


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_changed_or_cut_stream_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = stream_of(small(folder))
    target = folder / "out"
    target.mkdir()
    (target / "old").write_text("old")
    at = data.draw(st.integers(0, len(whole) - 1))
    harmed = whole[:at]
    if data.draw(st.booleans()):
        harmed += bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    found = trees.hash_of(folder / "small")
    assert found is not None
    with pytest.raises(Fault):
        trees.unpack(reader(harmed), target, found[0])
    assert (target / "old").read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == ["out", "small"]


def test_a_zlib_stream_that_was_changed_but_yields_the_same_is_refused(tmp_path: Path) -> None:
    """The level in a zlib stream's header says nothing about what it holds (RFC 1950, FLEVEL)."""
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "one").write_bytes(b"1" * 1000)
    whole = stream_of(tmp_path / "small")
    packed, other = (zlib.compress(b"", level)[:2] for level in (1, 9))
    assert whole.count(packed) == 1 and other != packed
    with pytest.raises(Fault, match="not what was sent"):
        trees.unpack(reader(whole.replace(packed, other)), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


@pytest.mark.parametrize(
    "name", ["../out", "/etc/x", "a/../../b", "a//b", "./a", "a/", "..", ".", "a\0b"]
)
def test_no_path_leaves_the_folder(tmp_path: Path, name: str) -> None:
    line = contract.canonical({"path": name, "mode": "644", "packed": False})
    data = line + b"\n" + struct.pack(">I", 1) + b"x" + struct.pack(">I", 0)
    with pytest.raises(Fault, match="damaged"):
        trees.unpack(reader(data), tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


def test_another_hash_than_was_asked_for_is_refused(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(Fault, match="not what was sent"):
        trees.unpack(reader(stream_of(tree)), tmp_path / "out", "0" * 64)


def test_a_link_is_not_followed(tree: Path) -> None:
    (tree / "link").symlink_to("/etc/hostname")
    with pytest.raises(Fault, match="is a link"):
        stream_of(tree)
