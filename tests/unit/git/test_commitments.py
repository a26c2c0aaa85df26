"""Commitments in odd repositories: nothing of the surroundings leaks in, nothing is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import commitments
from harness.errors import BadInput, Refused

PREPARED = b'{"exposure":{},"plan":"x","plan_hash":"h"}'
HOOKS = ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change")


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def plan_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """plans/tøy x in a repository with one commit; no configuration of the user."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    folder = tmp_path / "top" / "plans" / "tøy x"
    folder.mkdir(parents=True)
    git(tmp_path / "top", "init", "-q", "-b", "main")
    git(tmp_path / "top", "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def commit(folder: Path, run: str = "run-1") -> commitments.Repository:
    repository = commitments.find_repository(folder, folder / "run")
    files = {f"{repository.relative(folder)}/prepared.json": PREPARED}
    made = commitments.commit_files(repository, run, files, "one\n")
    commitments.require_content(repository, made, files)
    return repository


def test_an_earlier_commitment_under_a_name_that_git_quotes_is_found(plan_folder: Path) -> None:
    assert len(commitments.earlier_commitments(commit(plan_folder))) == 1


def test_an_earlier_commitment_is_found_when_its_branch_is_checked_out(plan_folder: Path) -> None:
    repository = commit(plan_folder)
    git(repository.top, "reset", "-q", "--hard", "harness/run-1")
    assert len(commitments.earlier_commitments(repository)) == 1


def test_an_earlier_commitment_that_cannot_be_read_is_refused(plan_folder: Path) -> None:
    repository = commit(plan_folder)
    (plan_folder / "prepared.json").write_text("nonsense")
    git(repository.top, "add", "-A")
    git(repository.top, "commit", "-q", "-m", "nonsense")
    git(repository.top, "branch", "harness/other")
    with pytest.raises(Refused, match="cannot be read"):
        commitments.earlier_commitments(repository)


def test_a_published_schema_of_commitments_is_none(plan_folder: Path) -> None:
    """As in this repository: docs/schemas/prepared.json lies on every branch of a run."""
    repository = commit(plan_folder)
    schemas = repository.top / "docs" / "schemas"
    schemas.mkdir(parents=True)
    published = Path(__file__).parents[3] / "docs" / "schemas" / "prepared.json"
    (schemas / "prepared.json").write_bytes(published.read_bytes())
    git(repository.top, "add", "-A")
    git(repository.top, "commit", "-q", "-m", "schemas")
    git(repository.top, "branch", "harness/other")
    assert len(commitments.earlier_commitments(repository)) == 1


def test_git_variables_of_the_caller_change_nothing(
    plan_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, "/nonexistent")
    assert not commit(plan_folder).made


def test_no_hook_runs(plan_folder: Path, tmp_path: Path) -> None:
    for name in HOOKS:
        hook = tmp_path / "top" / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\nexit 1\n")
        hook.chmod(0o755)
    commit(plan_folder)
    assert not list(tmp_path.glob("ran-*"))


@pytest.mark.parametrize("known", ["user.name", "user.email"])
def test_half_an_identity_is_enough(plan_folder: Path, known: str) -> None:
    git(plan_folder, "config", known, "me")
    git(plan_folder, "config", "user.useConfigOnly", "true")
    git(plan_folder, "config", "commit.gpgsign", "true")
    assert not commit(plan_folder).made


def test_a_branch_called_harness_is_named_with_the_command_that_moves_it(plan_folder: Path) -> None:
    git(plan_folder, "branch", "harness")
    with pytest.raises(BadInput, match="called 'harness' is in the way") as caught:
        commit(plan_folder)
    assert "branch -m harness" in caught.value.next_command


@pytest.mark.parametrize("fault", ["bare", "broken"])
def test_a_repository_that_git_cannot_use_is_not_taken_for_none(
    plan_folder: Path, fault: str
) -> None:
    if fault == "bare":
        git(plan_folder, "config", "core.bare", "true")
    else:
        (plan_folder.parents[1] / ".git" / "HEAD").write_text("garbage\n")
    with pytest.raises(BadInput, match="cannot be used by git"):
        commitments.find_repository(plan_folder, plan_folder / "run")


def test_where_there_is_no_repository_one_is_made(tmp_path: Path) -> None:
    assert commitments.find_repository(tmp_path, tmp_path / "run").made
