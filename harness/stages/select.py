"""select: one commit names the reference, every candidate and the one to serve."""

from __future__ import annotations

from harness import commitments
from harness.attest.commitment import attest
from harness.errors import Refused
from harness.prepared import Prepared
from harness.receipts import CommitReceipt, SelectReceipt, TrainReceipt
from harness.report.evidence import SELECTION_COMMITTED
from harness.selection import Selected, Selection
from harness.stages.commit import Committed, require_commitment
from harness.stages.stamp import Stamp
from harness.strict import load, load_file
from harness.study import Receipts, Study
from trainer import contract


def select(study: Study, done: Receipts, stamp: Stamp) -> SelectReceipt:
    """Write and commit selection.json. Raises Refused when the plan's commitment is gone."""
    committed = done.of(CommitReceipt)
    repository = require_commitment(study, committed)
    selection = _selection(study, done)
    data = contract.canonical(selection.to_json()) + b"\n"
    files = {selection_path(study, committed): data}

    def act() -> Committed:
        message = f"Select the candidates of {study.plan.name}, before any is scored\n"
        return Committed(commit=commitments.commit_files(repository, study.run, files, message))

    made = study.journal.effect(
        "select/commit", Committed, intent={"sha256": contract.sha256(data)}, act=act,
        adopt=lambda: None,
    )  # fmt: skip
    commitments.require_content(repository, made.commit, files)
    commitments.require_ancestor(
        repository, committed.commit, made.commit, "the selection does not follow the plan"
    )
    attested, notes = attest(
        study, "selection", what=SELECTION_COMMITTED, commit=made.commit, files=files,
        of_plan=committed.attestation,
    )  # fmt: skip
    roots = {name: each.parameter_root for name, each in selection.named().items()}
    return SelectReceipt(
        **stamp.close(),
        notes=notes,
        attestation=attested,
        selection_sha256=contract.sha256(data),
        commit=made.commit,
        branch=committed.branch,
        candidates=roots,
    )


def _selection(study: Study, done: Receipts) -> Selection:
    prepared = load_file(Prepared, study.prepared_path)
    seed = prepared.seed_model
    if seed.parameter_root is None:
        raise Refused("the seed model's parameter root is not known", where="prepared.json")
    return Selection(
        schema="harness/selection/1",
        plan=study.plan.name,
        plan_hash=study.loaded.hash,
        identity=prepared.identity,
        run=study.run,
        reference=Selected(parameter_root=seed.parameter_root, files=seed.files),
        parent=_parent(prepared),
        candidates={
            arm.arm: Selected(
                parameter_root=arm.candidate.parameter_root, files=arm.candidate.files
            )
            for arm in done.of(TrainReceipt).arms
        },
        serve=study.plan.serving.candidate if study.plan.serving else None,
    )


def _parent(prepared: Prepared) -> Selected | None:
    model = prepared.parent_model
    if model is None or model.parameter_root is None:
        return None
    return Selected(parameter_root=model.parameter_root, files=model.files)


def selection_path(study: Study, committed: CommitReceipt) -> str:
    """selection.json's path in the repository: beside the plan, under runs/<run id>/."""
    plan = next(path for path in committed.paths if path.endswith(study.loaded.path.name))
    folder = plan.removesuffix(study.loaded.path.name)
    return f"{folder}runs/{study.run}/selection.json"


def require_selection(study: Study, done: Receipts) -> Selection:
    """The gate before scoring (invariant 4): the committed selection, read back from git.

    Raises Refused when there is none or when it does not name reference and every arm.
    """
    chosen = done.of(SelectReceipt)
    committed = done.of(CommitReceipt)
    repository = require_commitment(study, committed)
    path = selection_path(study, committed)
    data = commitments.content_at(repository, chosen.commit, path)
    if data is None or contract.sha256(data) != chosen.selection_sha256:
        raise Refused(
            "no test or retention case is scored before the selection is committed",
            where=f"{chosen.commit[:12]}:{path}",
        )
    branch = commitments.branch_of(study.run)
    commitments.require_ancestor(
        repository, chosen.commit, branch, "the selection left the run's branch"
    )
    selection = load(Selection, data, where=path)
    missing = set(study.plan.models) - set(selection.named())
    if missing:
        raise Refused(f"the selection does not name {min(missing)}", where=path)
    return selection
