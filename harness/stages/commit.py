"""commit: plan.json and prepared.json on the run's branch, before anything is provisioned."""

from __future__ import annotations

import shlex

from harness import commitments, source
from harness.attest.commitment import attest
from harness.circumstances import circumstances
from harness.errors import Refused, command
from harness.prepared import Prepared
from harness.receipts import CommitReceipt, PrepareReceipt
from harness.report.evidence import PLAN_COMMITTED
from harness.stages.stamp import Stamp
from harness.strict import Model, load_file
from harness.study import Receipts, Study
from trainer import contract


class Committed(Model):
    """Outcome of a commit."""

    commit: str


def plan_files(study: Study, repository: commitments.Repository) -> dict[str, bytes]:
    """plan.json and prepared.json as they are now, by their path in the repository."""
    folder = (
        f"plans/{study.plan.name}" if repository.made else repository.relative(study.loaded.folder)
    )
    prefix = "" if folder == "." else f"{folder}/"
    path = study.prepared_path
    if not path.is_file():
        kept = f"harness/{study.run}:{prefix}prepared.json"
        git = shlex.join(["git", "-C", str(repository.top), "show", kept])
        raise Refused(
            "prepared.json was removed after it was committed",
            where=str(path),
            next_command=f"{git} > {shlex.quote(str(path))}",
        )
    return {
        f"{prefix}{study.loaded.path.name}": study.loaded.path.read_bytes(),
        f"{prefix}prepared.json": path.read_bytes(),
    }


def commit(study: Study, done: Receipts, stamp: Stamp) -> CommitReceipt:
    """Commit by plumbing onto harness/<run>. Raises BadInput when git cannot."""
    _require_unchanged(study, done.of(PrepareReceipt))
    repository = commitments.find_repository(study.loaded.folder, study.folder)
    files = plan_files(study, repository)
    base = repository.tip("HEAD")
    notes = circumstances(repository, files)

    def act() -> Committed:
        message = f"Commit plan {study.plan.name} and its prepared identity\n"
        return Committed(commit=commitments.commit_files(repository, study.run, files, message))

    made = study.journal.effect(
        "commit/plan", Committed, intent={"paths": sorted(files)}, act=act, adopt=lambda: None
    )
    commitments.require_content(repository, made.commit, files)
    attested, said = attest(study, "plan", what=PLAN_COMMITTED, commit=made.commit, files=files)
    return CommitReceipt(
        **stamp.close(),
        notes=(*notes, *said),
        repository="made" if repository.made else "found",
        branch=commitments.branch_of(study.run).removeprefix("refs/heads/"),
        commit=made.commit,
        base=base,
        paths=tuple(sorted(files)),
        attestation=attested,
    )


def _require_unchanged(study: Study, prepared: PrepareReceipt) -> None:
    """prepared.json and what will be pushed are still those that were prepared."""
    path, again = study.prepared_path, command("init", "NEW-NAME", "--from", study.loaded.path)
    record = load_file(Prepared, path)
    if contract.hash_of(record.to_json()) != prepared.prepared_sha256:
        raise Refused(
            "prepared.json is not what was prepared; a prepared plan is frozen, and a change is "
            "a new plan",
            where=str(path),
            next_command=again,
        )
    if source.gather(study.loaded, study.work / "source").sha256 != prepared.source_sha256:
        raise Refused(
            "the trainer changed after the plan was prepared",
            where=f"{path}#/source_sha256",
            next_command=again,
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
