"""The evidence folder: what an archive unpacks to, made from receipts and the store alone.

Layout: plan.json, prepared.json, selection.json, results.json, receipts/STAGE.json, inputs/,
models/NAME/, floor/, arms/ARM/, serving/PHASE/, logs/, source/, environments/HOST.json,
commits.json, commits/HASH, trees/HASH, statements/, programs.tar, tokenizer.json, development.json.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harness import commit_proof, commitments, snapshot, source
from harness.receipts import (
    CommitReceipt,
    EvaluateReceipt,
    ModelScores,
    PrepareReceipt,
    PushReceipt,
    SelectReceipt,
    ServeReceipt,
)
from harness.report.evidence import PLAN_COMMITTED, SELECTION_COMMITTED, Commit
from harness.stages.select import require_selection, selection_path
from harness.store.protocol import Artifact
from harness.study import Receipts, Study
from trainer import contract

LOG_END_BYTES = 128 * 1024
"""Of a long log the archive holds this much of its beginning and of its end."""


def materialise(study: Study, done: Receipts) -> Path:
    """Make the folder afresh from what is stored; returns it."""
    folder = study.work / "archive"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes(study.loaded.data)
    (folder / "prepared.json").write_bytes(study.prepared_path.read_bytes())
    if done.find(SelectReceipt) is not None:
        contract.write_json(folder / "selection.json", require_selection(study, done).to_json())
    for file in done.of(PrepareReceipt).prepared_files:
        study.store.fetch(file, folder / "inputs" / file.name)
    tokenizer = next(f for f in done.of(PrepareReceipt).seed_files if f.name == "tokenizer.json")
    study.store.fetch(tokenizer, folder / "tokenizer.json")
    for artifact in named_files(done):
        study.store.fetch(artifact, folder / artifact.name)
        if artifact.name.startswith("logs/"):
            abridge(folder / artifact.name)
    _arms(folder, done)
    _commits(study, folder, done)
    source.gather(study.loaded, folder / "source")
    pushed = done.find(PushReceipt)
    for host in pushed.hosts if pushed else ():
        path = folder / "environments" / f"{host.host}.json"
        path.parent.mkdir(exist_ok=True)
        contract.write_json(path, host.environment_manifest)
    _development(study, folder)
    snapshot.write_snapshot(folder / snapshot.MEMBER, study.work / "programs")
    return folder


def abridge(log: Path) -> None:
    """Leave out the middle of a long log; the store keeps it whole.

    A trainer may write gigabytes, and an archive that expands so far is refused by its readers.
    """
    size = log.stat().st_size
    if size <= 2 * LOG_END_BYTES:
        return
    with open(log, "rb") as handle:
        first = handle.read(LOG_END_BYTES)
        handle.seek(size - LOG_END_BYTES)
        last = handle.read()
    said = f"\n[{size - 2 * LOG_END_BYTES} bytes are left out here; the store has them all]\n"
    contract.write_atomic(log, first + said.encode() + last)


def named_files(done: Receipts) -> list[Artifact]:
    """Stored statements, losses, answers, scores, serving records, logs; a name is a place here."""
    found = _attested(done)
    for arm in done.arms:
        found += arm.losses
        for attempt in arm.attempts:
            found += attempt.logs
    evaluated, served = done.find(EvaluateReceipt), done.find(ServeReceipt)
    for model in _evaluations(evaluated):
        found += [*model.answers, *model.retention, model.scores]
        for attempt in model.attempts:
            found += attempt.logs
    for begun in done.unfinished:
        found += begun.losses
        for attempt in begun.attempts:
            found += attempt.logs
    for phase in served.phases if served else ():
        found += [each for each in (phase.order, phase.events) if each is not None]
        for replica in phase.replicas:
            found += [each for each in (replica.served, replica.log) if each is not None]
    return found


def _attested(done: Receipts) -> list[Artifact]:
    """Statements of the commitments, their signatures, keys, time stamps and certificates."""
    selected = done.find(SelectReceipt)
    told = [done.of(CommitReceipt).attestation, selected.attestation if selected else None]
    return [
        artifact
        for one in told
        if one is not None
        for artifact in (one.statement, one.signature, one.signer, one.stamp, one.authority)
        if artifact is not None
    ]


def _evaluations(evaluated: EvaluateReceipt | None) -> tuple[ModelScores, ...]:
    """Every evaluation, the one of the flip floor last."""
    if evaluated is None:
        return ()
    return (*evaluated.models, *([evaluated.floor] if evaluated.floor else []))


def _arms(folder: Path, done: Receipts) -> None:
    for arm in done.arms:
        for rank in arm.ranks:
            contract.write_json(
                folder / "arms" / arm.arm / f"receipt-{rank.rank}.json", rank.to_json()
            )
    evaluated = done.find(EvaluateReceipt)
    for model in evaluated.models if evaluated else ():
        contract.write_json(folder / "models" / model.name / "receipt-0.json", model.rank.to_json())


def _commits(study: Study, folder: Path, done: Receipts) -> None:
    """The commitments with the raw git objects that prove their content and order."""
    repository = commitments.find_repository(study.loaded.folder, study.folder)
    committed, selected = done.of(CommitReceipt), done.find(SelectReceipt)
    of_plan = {
        "plan.json" if path.endswith(study.loaded.path.name) else "prepared.json": path
        for path in committed.paths
    }
    rows = [
        Commit(what=PLAN_COMMITTED, commit=committed.commit, branch=committed.branch,
               paths=of_plan)
    ]  # fmt: skip
    if selected is not None:
        path = selection_path(study, committed)
        rows.append(
            Commit(what=SELECTION_COMMITTED, commit=selected.commit, branch=selected.branch,
                   paths={"selection.json": path})
        )  # fmt: skip
    contract.write_json(folder / "commits.json", [row.to_json() for row in rows])
    raw = commit_proof.commits_between(repository, rows[0].commit, rows[-1].commit)
    _objects(folder / "commits", raw)
    for row in rows:
        _objects(
            folder / "trees", commit_proof.trees_to(repository, row.commit, row.paths.values())
        )


def _objects(folder: Path, raw: dict[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for name, data in raw.items():
        (folder / name).write_bytes(data)


def _development(study: Study, folder: Path) -> None:
    """Every `harness develop` run of this plan's name is an attempt in the record."""
    rows = [
        contract.read_json(path)
        for path in sorted((study.runs / study.plan.name).glob("develop-*/development.json"))
    ]
    contract.write_json(folder / "development.json", rows)


def write_receipts(folder: Path, done: Receipts) -> dict[str, str]:
    """receipts/STAGE.json for every stage so far; returns their hashes by stage."""
    (folder / "receipts").mkdir(exist_ok=True)
    hashes = {}
    for stage, receipt in done.by_stage.items():
        value = receipt.to_json()
        contract.write_json(folder / "receipts" / f"{stage}.json", value)
        hashes[f"receipt {stage}"] = contract.hash_of(value)
    return hashes
