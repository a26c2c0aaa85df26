"""Kept evidence in git: clones, merged and squashed histories, and what `verify` says of each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.commitments import Repository, earlier_commitments
from harness.errors import BadInput
from harness.verify import verify
from tests.study.conftest import Desk


def git(top: Path, *words: str) -> str:
    who = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    return subprocess.run(
        ["git", "-C", str(top), *who, *words], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def home(finished: Desk, tmp_path: Path) -> Path:
    """A repository with a commit and the run's branch, as the study left it."""
    top = tmp_path / "home"
    subprocess.run(["git", "clone", "-q", str(finished.folder), str(top)], check=True)
    git(top, "checkout", "-q", "--orphan", "main")
    git(top, "rm", "-qrf", "--ignore-unmatch", ".")
    (top / "README").write_text("ours\n")
    git(top, "add", "README")
    git(top, "commit", "-qm", "Begin")
    git(top, "branch", branch(finished), f"origin/{branch(finished)}")
    git(top, "remote", "remove", "origin")
    return top


def branch(finished: Desk) -> str:
    return f"harness/{finished.latest.name}"


def merge(top: Path, name: str, *words: str) -> None:
    git(top, "merge", "-q", "--allow-unrelated-histories", *words, name)


def add_evidence(finished: Desk, top: Path) -> Path:
    done = finished.harness("keep", str(finished.latest), "--into", str(top / "evidence"))
    assert done.code == 0, done.err
    assert f"git merge {branch(finished)}" in done.out.replace("\n", " ")
    git(top, "add", "evidence")
    git(top, "commit", "-qm", "Evidence")
    return top / "evidence" / "toy"


def clone(top: Path, *words: str) -> Path:
    other = top.with_name("clone")
    subprocess.run(["git", "clone", "-q", *words, top.as_uri(), str(other)], check=True)
    return other / "evidence" / "toy"


def test_merged_commitments_are_found_in_a_fresh_clone(finished: Desk, home: Path) -> None:
    merge(home, branch(finished), "--no-ff", "-m", "Merge the study's commitments")
    add_evidence(finished, home)
    git(home, "branch", "-qD", branch(finished))
    found = verify(clone(home))
    told = [line for line in found.lines if line.startswith("history")]
    assert "in the history of" in told[0]
    assert git(home, "rev-parse", "HEAD") in told[1]
    assert not any("others have" in phrase for phrase in found.cannot)


def test_a_clone_without_the_branch_still_knows_which_cases_were_used(
    finished: Desk, home: Path
) -> None:
    add_evidence(finished, home)
    git(home, "branch", "-qD", branch(finished))
    folder = clone(home)
    (known,) = earlier_commitments(Repository(folder.parents[1], made=False))
    assert known["plan"] == "toy" and known["exposure"]["test"]
    found = verify(folder)
    assert any("this repository lacks" in phrase for phrase in found.cannot)


def test_an_unmerged_branch_and_a_shallow_clone_are_said(finished: Desk, home: Path) -> None:
    folder = add_evidence(finished, home)
    found = verify(folder)
    assert any(f"merge {branch(finished)}" in phrase for phrase in found.cannot)
    assert any("are here on" in line for line in found.lines)
    merge(home, branch(finished), "-m", "Merge")
    beside = verify(folder)
    assert any("stands beside it" in phrase for phrase in beside.cannot)
    shallow = verify(clone(home, "--depth", "1", "--branch", "main"))
    assert any("git fetch --unshallow" in phrase for phrase in shallow.cannot)


def test_a_changed_copy_of_a_committed_file_is_found(finished: Desk, home: Path) -> None:
    folder = add_evidence(finished, home)
    (folder / "SHA256SUMS").unlink()
    path = folder / "prepared.json"
    path.write_bytes(path.read_bytes().replace(b"toy", b"Toy"))
    with pytest.raises(BadInput, match=r"differs"):
        verify(folder)
