"""Evidence that was changed, cut or made up is found by `verify` and not copied by `keep`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.study.conftest import Desk


@pytest.fixture
def copy(finished: Desk, tmp_path: Path) -> Path:
    """A copy of the finished run to spoil."""
    return Path(shutil.copytree(finished.latest, tmp_path / "copy", symlinks=True))


def change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "name", ["results.json", "resources.json", "report/index.html", "evidence.tar.gz"]
)
def test_a_changed_file_is_named(finished: Desk, copy: Path, name: str) -> None:
    change(copy / name)
    done = finished.harness("verify", str(copy))
    assert done.code == 2
    assert name in done.err.replace("\n", "")


@pytest.mark.parametrize("name", ["results.json", "evidence.tar.gz", "closing.json"])
def test_a_missing_file_is_said_and_nothing_is_kept(
    finished: Desk, copy: Path, tmp_path: Path, name: str
) -> None:
    (copy / name).unlink()
    for words in (("verify", str(copy)), ("keep", str(copy), "--into", str(tmp_path / "kept"))):
        done = finished.harness(*words)
        assert done.code == 2
        assert name in done.err.replace("\n", "")
    assert not list((tmp_path / "kept").glob("*"))


def test_a_page_that_the_evidence_does_not_give_is_named(finished: Desk, copy: Path) -> None:
    (copy / "report" / "more.html").write_text("made up")
    done = finished.harness("verify", str(copy))
    assert done.code == 2
    assert "more.html" in done.err.replace("\n", "")


def test_a_name_cannot_lead_out_of_the_evidence_folder(
    finished: Desk, copy: Path, tmp_path: Path
) -> None:
    closing = copy / "closing.json"
    closing.write_text(closing.read_text().replace('"plan":"toy"', '"plan":"../../out"'))
    done = finished.harness("keep", str(copy), "--into", str(tmp_path / "a" / "b"))
    assert done.code == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_plain_file_is_not_read_for_ever(
    finished: Desk, tmp_path: Path, kind: str
) -> None:
    odd = tmp_path / "odd" / "closing.json"
    odd.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "device":
        odd.symlink_to("/dev/zero")
    else:
        odd.mkdir()
    assert finished.harness("verify", str(odd.parent)).code == 2


def spoil_record(run: Path) -> None:
    (run / "run.json").write_text('{"schema":"harness/run/1","run":7}')


def remove_record(run: Path) -> None:
    (run / "run.json").unlink()


def spoil_journal(run: Path) -> None:
    with (run / "journal.jsonl").open("a") as handle:
        handle.write("garbage\n")


def remove_journal(run: Path) -> None:
    (run / "journal.jsonl").unlink()


def empty(run: Path) -> None:
    shutil.rmtree(run)
    run.mkdir()


@pytest.mark.parametrize(
    "spoil", [spoil_record, remove_record, spoil_journal, remove_journal, empty]
)
def test_status_of_a_damaged_or_foreign_run_is_one_sentence(
    finished: Desk, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    run = tmp_path / "runs" / "toy" / "latest"
    shutil.copytree(finished.latest, run, ignore=shutil.ignore_patterns("fleet", "work"))
    spoil(run)
    for words in (("status",), ("status", "toy")):
        done = finished.harness(*words, "--runs", str(tmp_path / "runs"))
        assert done.code == 2, done.err
        assert done.out == ""
        assert done.err.count("bad input:") == 1
        assert str(run) in done.err
    assert finished.harness("status", "--json", "--runs", str(tmp_path / "runs")).code == 2
