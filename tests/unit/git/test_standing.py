"""What the repository around kept evidence shows of its commitments, and what it contradicts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import commitments
from harness.commitments import Repository
from harness.errors import BadInput
from harness.report.evidence import Commit
from harness.verify.standing import check_standing

RUN = "20261130-120000-abcd"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "evidence" / "toy").mkdir(parents=True)
    return Repository(tmp_path, made=False)


def commit(repository: Repository, path: str) -> str:
    made = commitments.commit_files(repository, RUN, {path: path.encode()}, f"{path}\n")
    repository.git("update-ref", "HEAD", made)
    return made


def rows(*names: str) -> tuple[Commit, ...]:
    return tuple(Commit(what=f"{n}.", commit=name, branch="b") for n, name in enumerate(names))


def test_evidence_after_both_commitments_is_shown(repository: Repository) -> None:
    plan, selection = commit(repository, "plan"), commit(repository, "selection")
    last = commit(repository, "evidence/toy/closing.json")
    found = check_standing(repository.top / "evidence" / "toy", rows(plan, selection))
    assert last in found.lines[-1] and found.cannot == ()


def test_evidence_before_its_selection_is_refused(repository: Repository) -> None:
    plan = commit(repository, "plan")
    commit(repository, "evidence/toy/closing.json")
    selection = commit(repository, "selection")
    with pytest.raises(BadInput, match="before the 1"):
        check_standing(repository.top / "evidence" / "toy", rows(plan, selection))


def test_another_order_is_refused(repository: Repository) -> None:
    plan, selection = commit(repository, "plan"), commit(repository, "selection")
    with pytest.raises(BadInput, match="does not follow"):
        check_standing(repository.top / "evidence" / "toy", rows(selection, plan))


def test_outside_of_a_repository_nothing_is_shown(tmp_path: Path) -> None:
    found = check_standing(tmp_path, rows("a" * 40, "b" * 40))
    assert found.lines == () and "in no repository" in found.cannot[0]
