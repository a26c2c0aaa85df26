"""Rewritten history is refused and unusual repositories are said, in real repositories."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import commitments
from harness.circumstances import circumstances
from harness.commitments import Repository, branch_of, require_ancestor
from harness.errors import Refused

FILES = {"plan.json": b"the plan\n", "prepared.json": b'{"exposure":{}}\n'}
BRANCH = branch_of("run-1")


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    argv = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository whose second commit holds the plan."""
    folder = tmp_path / "top"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    (folder / "plan.json").write_bytes(FILES["plan.json"])
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "plan")
    return folder


def commit(folder: Path, run: str = "run-1") -> tuple[Repository, str]:
    repository = commitments.find_repository(folder, folder / "run")
    return repository, commitments.commit_files(repository, run, FILES, "one\n")


def amend(top: Path) -> None:
    git(top, "checkout", "-q", "harness/run-1")
    git(top, "commit", "-q", "--amend", "-m", "reworded")


def rebase(top: Path) -> None:
    git(top, "commit", "-q", "--allow-empty", "-m", "other")
    git(top, "checkout", "-q", "harness/run-1")
    git(top, "rebase", "-q", "main")


def reset(top: Path) -> None:
    git(top, "update-ref", BRANCH, "main")


def squash(top: Path) -> None:
    git(top, "checkout", "-q", "harness/run-1")
    git(top, "reset", "-q", "--soft", "main~1")
    git(top, "commit", "-q", "-m", "all in one")


def remove(top: Path) -> None:
    git(top, "branch", "-D", "harness/run-1")


@pytest.mark.parametrize("rewrite", [amend, rebase, reset, squash, remove])
def test_rewritten_history_is_refused_with_the_command_that_restores_it(
    top: Path, rewrite: Callable[[Path], None]
) -> None:
    repository, made = commit(top)
    require_ancestor(repository, made, BRANCH, "the run's branch was moved")
    rewrite(top)
    with pytest.raises(Refused, match="the run's branch was moved") as caught:
        require_ancestor(repository, made, BRANCH, "the run's branch was moved")
    git(top, "checkout", "-q", "main")
    subprocess.run(caught.value.next_command, shell=True, check=True)
    require_ancestor(repository, made, BRANCH, "the run's branch was moved")


def test_a_commit_that_is_gone_is_refused(top: Path) -> None:
    repository, made = commit(top)
    remove(top)
    git(top, "reflog", "expire", "--expire=now", "--all")
    git(top, "gc", "-q", "--prune=now")
    with pytest.raises(Refused, match=f"{made[:12]} is not in the repository") as caught:
        require_ancestor(repository, made, BRANCH, "the run's branch was moved")
    assert caught.value.next_command == ""


def test_history_of_the_users_own_branch_may_be_rewritten(top: Path) -> None:
    """The run's branch carries its own ancestors."""
    repository, made = commit(top)
    git(top, "commit", "-q", "--amend", "-m", "reworded")
    require_ancestor(repository, made, BRANCH, "moved")


def said(folder: Path) -> str:
    repository = commitments.find_repository(folder, folder / "run")
    return " | ".join(circumstances(repository, FILES))


def test_an_ordinary_repository_is_not_mentioned(top: Path) -> None:
    assert said(top) == ""


def test_a_dirty_plan_is_said_and_what_was_run_is_committed(top: Path) -> None:
    git(top, "commit", "-q", "--allow-empty", "-m", "x")
    (top / "plan.json").write_text("an older plan\n")
    git(top, "commit", "-qam", "older")
    assert said(top) == "plan.json differed from HEAD's; the run's branch holds what was run"
    repository, made = commit(top)
    commitments.require_content(repository, made, FILES)
    assert git(top, "status", "--porcelain") == ""


def test_a_detached_head_is_said_and_committed_on(top: Path) -> None:
    git(top, "checkout", "-q", "--detach")
    assert said(top).startswith("HEAD was detached at ")
    repository, made = commit(top)
    require_ancestor(repository, git(top, "rev-parse", "HEAD"), made, "moved")
    assert git(top, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"


def test_a_shallow_clone_is_said_and_committed_in(top: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{top}", "shallow")
    assert "is a shallow clone: earlier commitments" in said(tmp_path / "shallow")
    repository, made = commit(tmp_path / "shallow")
    require_ancestor(repository, made, BRANCH, "moved")


def test_a_submodule_is_said_and_the_superproject_left_alone(top: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "submodule", "add", "-q", str(top), "inner")
    git(outer, "commit", "-q", "-m", "with a submodule")
    assert "the plan is in a submodule" in said(outer / "inner")
    before = git(outer, "for-each-ref")
    repository, made = commit(outer / "inner")
    assert repository.top == outer / "inner"
    require_ancestor(repository, made, BRANCH, "moved")
    assert git(outer, "for-each-ref") == before and git(outer, "status", "--porcelain") == ""


def test_no_repository_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    assert said(folder).startswith("no repository holds the plan")


def test_commitments_on_a_remotes_branches_count_as_exposure(top: Path, tmp_path: Path) -> None:
    """A clone has other people's runs as remote branches only."""
    commit(top)
    git(tmp_path, "clone", "-q", f"file://{top}", "clone")
    repository = commitments.find_repository(tmp_path / "clone", tmp_path / "run")
    assert commitments.earlier_commitments(repository) == [{"exposure": {}}]
