"""The folder store: whole or not at all, never replaced, and it says what is broken."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.errors import HarnessError, Leaked, Waiting
from harness.onhost import objects
from harness.store.folder import FolderStore
from harness.store.protocol import Artifact, Store
from trainer import contract

ROOT = Path(__file__).resolve().parents[3]
PUT = """
import pathlib, sys
from harness.errors import HarnessError
from harness.store.folder import FolderStore
try:
    print(FolderStore(pathlib.Path(sys.argv[1])).put(pathlib.Path(sys.argv[2]), name="x").sha256)
except HarnessError as error:
    sys.exit(error.sentence())
"""


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_is_a_store(tmp_path: Path) -> None:
    store: Store = FolderStore(tmp_path)
    assert store.kind == "folder"


def test_what_is_put_is_found_read_listed_and_located(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    assert list(store.list()) == []
    artifact = store.put_bytes(b"hello", name="greeting")
    (tmp_path / "file").write_bytes(b"other")
    other = store.put(tmp_path / "file", name="other")
    assert artifact == Artifact(name="greeting", sha256=contract.sha256(b"hello"), bytes=5)
    assert store.read(artifact) == b"hello"
    assert store.has(artifact.sha256) and not store.has("0" * 64)
    assert sorted(store.list()) == sorted([(artifact.sha256, 5), (other.sha256, 5)])
    where = Path(store.locate(artifact.sha256))
    assert where == tmp_path / "store/objects" / artifact.sha256[:2] / artifact.sha256
    assert where.stat().st_mode & 0o777 == 0o444
    store.fetch(artifact, tmp_path / "new" / "copy")
    assert (tmp_path / "new" / "copy").read_bytes() == b"hello"


def test_put_again_leaves_the_object_as_it_is(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    artifact = store.put_bytes(b"hello", name="a")
    before = os.stat(store.locate(artifact.sha256))
    assert store.put_bytes(b"hello", name="a") == artifact
    after = os.stat(store.locate(artifact.sha256))
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert list((tmp_path / "incoming").iterdir()) == []


def test_eight_processes_put_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(os.urandom(1 << 20) * 8)
    putting = [python(PUT, tmp_path / "store", tmp_path / "file") for _ in range(8)]
    hashes = {one.communicate()[0] for one in putting}
    digest, size = contract.hash_file(tmp_path / "file")
    assert hashes == {f"{digest}\n"}
    assert list(FolderStore(tmp_path / "store").list()) == [(digest, size)]
    assert list((tmp_path / "store" / "incoming").iterdir()) == []


@pytest.mark.parametrize("delay_ms", range(150, 330, 20))
def test_a_killed_put_leaves_no_partial_object(tmp_path: Path, delay_ms: int) -> None:
    with open(tmp_path / "file", "wb") as handle:
        handle.truncate(100 << 20)
    digest, size = contract.hash_file(tmp_path / "file")
    put = python(PUT, tmp_path / "store", tmp_path / "file")
    time.sleep(delay_ms / 1000)
    put.kill()
    put.communicate()
    store = FolderStore(tmp_path / "store")
    assert list(store.list()) in ([], [(digest, size)])


def test_killed_half_way_nothing_is_there_and_a_later_put_sweeps(tmp_path: Path) -> None:
    program = PUT.replace("try:", "", 1).split("    print")[0] + (
        "import os, signal\n"
        "from harness.onhost import objects\n"
        "def half(pieces, sha256, size, write, source=''):\n"
        "    write(next(pieces)); os.kill(os.getpid(), signal.SIGKILL)\n"
        "objects.copy_checked = half\n"
        "FolderStore(pathlib.Path(sys.argv[1])).put(pathlib.Path(sys.argv[2]), name='x')\n"
    )
    (tmp_path / "file").write_bytes(os.urandom(9 << 20))
    killed = python(program, tmp_path / "store", tmp_path / "file")
    killed.communicate()
    assert killed.returncode == -9
    store = FolderStore(tmp_path / "store")
    (stray,) = (tmp_path / "store" / "incoming").iterdir()
    assert list(store.list()) == [] and stray.stat().st_size > 0
    os.utime(stray, (0, 0))
    store.put(tmp_path / "file", name="x")
    assert not stray.exists() and len(list(store.list())) == 1


def test_a_sweep_leaves_what_a_slow_writer_still_writes(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    with objects._temporary(incoming) as (path, _):
        os.utime(path, (0, 0))
        store.put_bytes(b"other", name="o")
        assert path.exists()


def test_an_object_of_another_size_is_not_taken_for_stored(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    artifact = store.put_bytes(b"hello", name="a")
    path = Path(store.locate(artifact.sha256))
    path.chmod(0o644)
    os.truncate(path, 3)
    with pytest.raises(Leaked, match="has 3 bytes, not 5"):
        store.put_bytes(b"hello", name="a")


@pytest.mark.parametrize(
    ("harm", "words"), [("flip", "has the hash"), ("cut", "has 4 bytes"), ("gone", "is not in")]
)
def test_fetch_and_read_say_what_is_wrong(tmp_path: Path, harm: str, words: str) -> None:
    store = FolderStore(tmp_path / "store")
    artifact = store.put_bytes(b"hello", name="a")
    path = Path(store.locate(artifact.sha256))
    path.chmod(0o644)
    if harm == "flip":
        path.write_bytes(b"hellO")
    elif harm == "cut":
        path.write_bytes(b"hell")
    else:
        path.unlink()
    target = tmp_path / "target" / "copy"
    for act in (lambda: store.read(artifact), lambda: store.fetch(artifact, target)):
        with pytest.raises(Leaked, match=words) as caught:
            act()
        assert caught.value.where == "a"
    assert list((tmp_path / "target").iterdir()) == []


def test_a_file_that_changes_while_it_is_stored_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"before")
    real = contract.hash_file

    def hash_then_change(path: Path) -> tuple[str, int]:
        found = real(path)
        path.write_bytes(b"after!")
        return found

    monkeypatch.setattr("trainer.contract.hash_file", hash_then_change)
    store = FolderStore(tmp_path / "store")
    with pytest.raises(Waiting, match="changed while it was stored"):
        store.put(tmp_path / "file", name="a")
    assert list(store.list()) == []


def test_an_object_over_the_limit_is_not_read_into_memory(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    with pytest.raises(HarnessError, match="over the limit of 4"):
        store.read(store.put_bytes(b"hello", name="a"), limit=4)


def test_a_file_size_limit_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(os.urandom(2 << 20))
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20,) * 2)\n"
    put = python(limited + PUT, tmp_path / "store", tmp_path / "file")
    said = put.communicate()[1]
    assert put.returncode == 1
    assert said.count("\n") == 1 and "has no room left (File too large)" in said
    assert [p for p in (tmp_path / "store").rglob("*") if p.is_file()] == []


def test_a_full_disk_is_one_sentence_and_leaves_nothing(small_disk: Path) -> None:
    store = FolderStore(small_disk / "store")
    kept = store.put_bytes(b"kept", name="k")
    with pytest.raises(Waiting, match=r"has no room left \(No space left on device\)") as full:
        store.put_bytes(os.urandom(2 << 20), name="big")
    assert "\n" not in full.value.sentence()
    assert list(store.list()) == [(kept.sha256, 4)]
    assert list((small_disk / "store/incoming").iterdir()) == []


def test_threads_that_fetch_and_put_do_not_disturb_each_other(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    data = [os.urandom(1 << 16) for _ in range(8)]
    faults: list[Exception] = []

    def work(number: int) -> None:
        try:
            for each in data:
                artifact = store.put_bytes(each, name="a")
                store.fetch(artifact, tmp_path / "same")
                assert store.read(artifact) == each
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
