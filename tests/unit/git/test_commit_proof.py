"""Content and order of commitments, proved from raw git objects of either hash, without git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import commit_proof, commitments
from harness.commitments import Repository
from harness.errors import BadInput
from harness.report.evidence import Commit
from harness.verify.order import check_commitments

RUN = "20261130-120000-abcd"
PLAN, SELECTION = "studies/plans/toy/plan.json", f"studies/plans/toy/runs/{RUN}/selection.json"


@pytest.fixture(params=["sha1", "sha256"])
def proved(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, tuple[Commit, ...]]:
    """An archive's folder, and its two commitments with somebody's commit between them."""
    top = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", f"--object-format={request.param}", str(top)], check=True)
    repository = Repository(top, made=False)
    first = commitments.commit_files(repository, RUN, {PLAN: b"plan"}, "plan\n")
    commitments.commit_files(repository, RUN, {"notes": b"mine"}, "between\n")
    last = commitments.commit_files(repository, RUN, {SELECTION: b"selection"}, "selection\n")
    folder = tmp_path / "archive"
    for place in ("commits", "trees"):
        (folder / place).mkdir(parents=True)
    (folder / "plan.json").write_bytes(b"plan")
    (folder / "selection.json").write_bytes(b"selection")
    rows = (
        Commit(what="plan", commit=first, branch="b", paths={"plan.json": PLAN}),
        Commit(what="selection", commit=last, branch="b", paths={"selection.json": SELECTION}),
    )
    for name, data in commit_proof.commits_between(repository, first, last).items():
        (folder / "commits" / name).write_bytes(data)
    for row in rows:
        trees = commit_proof.trees_to(repository, row.commit, row.paths.values())
        for name, data in trees.items():
            (folder / "trees" / name).write_bytes(data)
    return folder, rows


def test_two_commitments_with_a_commit_between_are_proved(
    proved: tuple[Path, tuple[Commit, ...]],
) -> None:
    folder, rows = proved
    found = check_commitments(folder, rows)
    assert [line.split()[1] for line in found.lines] == [row.commit for row in rows]
    assert found.cannot == ()
    assert len(list((folder / "commits").iterdir())) == 3


def test_another_order_is_found(proved: tuple[Path, tuple[Commit, ...]]) -> None:
    folder, rows = proved
    with pytest.raises(BadInput, match="does not lead back"):
        check_commitments(folder, rows[::-1])


def test_another_file_than_was_committed_is_found(
    proved: tuple[Path, tuple[Commit, ...]],
) -> None:
    folder, rows = proved
    (folder / "selection.json").write_bytes(b"Selection")
    with pytest.raises(BadInput, match=r"selection\.json differs"):
        check_commitments(folder, rows)


def test_every_object_is_needed_and_is_the_one_of_its_name(
    proved: tuple[Path, tuple[Commit, ...]],
) -> None:
    folder, rows = proved
    for path in [*(folder / "commits").iterdir(), *(folder / "trees").iterdir()]:
        data = path.read_bytes()
        path.write_bytes(data + b"\n")
        with pytest.raises(BadInput):
            check_commitments(folder, rows)
        path.unlink()
        with pytest.raises(BadInput):
            check_commitments(folder, rows)
        path.write_bytes(data)


def test_an_older_archive_proves_the_order_only(proved: tuple[Path, tuple[Commit, ...]]) -> None:
    folder, rows = proved
    older = tuple(row.model_copy(update={"paths": {}}) for row in rows)
    assert "no git trees" in check_commitments(folder, older).cannot[0]
