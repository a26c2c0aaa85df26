"""commit: plan.json and prepared.json on the run's branch, before anything is provisioned."""

from __future__ import annotations

from harness import commitments
from harness.receipts import CommitReceipt, PrepareReceipt
from harness.stages.stamp import Stamp
from harness.strict import Model
from harness.study import Receipts, Study


class Committed(Model):
    """Outcome of a commit."""

    commit: str


def plan_files(study: Study, repository: commitments.Repository) -> dict[str, bytes]:
    """plan.json and prepared.json as they are now, by their path in the repository."""
    folder = (
        f"plans/{study.plan.name}" if repository.made else repository.relative(study.loaded.folder)
    )
    prefix = "" if folder == "." else f"{folder}/"
    return {
        f"{prefix}{study.loaded.path.name}": study.loaded.path.read_bytes(),
        f"{prefix}prepared.json": study.prepared_path.read_bytes(),
    }


def commit(study: Study, done: Receipts, stamp: Stamp) -> CommitReceipt:
    """Commit by plumbing onto harness/<run>. Raises BadInput when git cannot."""
    done.of(PrepareReceipt)
    repository = commitments.find_repository(study.loaded.folder, study.folder)
    files = plan_files(study, repository)
    base = repository.tip("HEAD")

    def act() -> Committed:
        message = f"Commit plan {study.plan.name} and its prepared identity\n"
        return Committed(commit=commitments.commit_files(repository, study.run, files, message))

    made = study.journal.effect(
        "commit/plan", Committed, intent={"paths": sorted(files)}, act=act, adopt=lambda: None
    )
    commitments.require_content(repository, made.commit, files)
    return CommitReceipt(
        **stamp.close(),
        repository="made" if repository.made else "found",
        branch=commitments.branch_of(study.run).removeprefix("refs/heads/"),
        commit=made.commit,
        base=base,
        paths=tuple(sorted(files)),
    )


def require_commitment(study: Study, receipt: CommitReceipt) -> commitments.Repository:
    """The gate before provisioning and before training.

    Raises Refused when plan.json or prepared.json changed since the commit, or the commit is no
    longer an ancestor of the run's branch.
    """
    repository = commitments.find_repository(study.loaded.folder, study.folder)
    commitments.require_content(repository, receipt.commit, plan_files(study, repository))
    branch = commitments.branch_of(study.run)
    commitments.require_ancestor(repository, receipt.commit, branch, "the run's branch was moved")
    return repository
