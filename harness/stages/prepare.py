"""prepare: deterministic inputs into the store, their identity into prepared.json."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from harness import commitments, environments, parent_model, seed_model, source
from harness.errors import Refused, Waiting, command
from harness.exposure import Ledger, build_ledger
from harness.inputs import hub
from harness.inputs.identity import PreparedFile
from harness.inputs.prepare import prepare_inputs
from harness.inputs.prepared import PreparedInputs
from harness.plan.model import HubTokenizer
from harness.prepared import Prepared, SeedModel, TargetCounts
from harness.receipts import PrepareReceipt
from harness.stages.stamp import Stamp
from harness.store.protocol import Artifact
from harness.strict import Model, load_file
from harness.study import Receipts, Study
from trainer import contract


class Written(Model):
    """Outcome of writing prepared.json."""

    sha256: str


def prepare(study: Study, done: Receipts, stamp: Stamp) -> PrepareReceipt:
    """Compute everything that any stage will read, and compare it with prepared.json.

    Raises Refused when prepared.json is there and says something else (a changed plan, trainer,
    input or seed model), BadInput when the plan cannot be prepared.
    """
    tree = source.gather(study.loaded, study.work / "source")
    seed, tokenizer = _seed(study, tree)
    parent = _parent(study, seed)
    folder = study.work / "inputs"
    shutil.rmtree(folder, ignore_errors=True)
    study.progress.note("making documents, cases and masks")
    inputs = prepare_inputs(
        study.plan,
        study.loaded.folder,
        tokenizer,
        folder,
        ledger=_ledger(study),
        hub_endpoint=study.hub_endpoint,
    )
    record = _record(study, tree, seed, tokenizer, inputs, parent)
    digest = _write(study, record)
    files = tuple(study.store.put(folder / each.path, name=each.path) for each in inputs.files)
    return PrepareReceipt(
        **stamp.close(),
        notes=record.notes,
        identity=record.identity,
        prepared_sha256=digest,
        source_sha256=tree.sha256,
        prepared_files=files,
        seed_files=seed.files,
        parent_files=parent.files if parent else None,
        arms=record.arms,
    )


def _seed(study: Study, tree: source.Source) -> tuple[seed_model.SeedFiles, Path]:
    study.progress.note("the trainer's environment: finding it, or building it once")
    environment = environments.build(
        tree, study.cache, as_found=study.plan.environment == "as-found"
    )
    study.progress.note("the seed model: finding it, or converting it once")
    seed = seed_model.obtain(
        seed_model.SeedMaker(
            loaded=study.loaded,
            source=tree,
            environment=environment,
            cache=study.cache,
            store=study.store,
            hub_endpoint=study.hub_endpoint,
        )
    )
    tokenizer = study.work / "tokenizer.json"
    chosen = study.plan.tokenizer
    if isinstance(chosen, HubTokenizer):
        found = hub.fetch(
            chosen.repo, chosen.revision, "tokenizer.json", endpoint=study.hub_endpoint
        )
        shutil.copyfile(found, tokenizer)
    else:
        study.store.fetch(_named(seed.files, "tokenizer.json"), tokenizer)
    return seed, tokenizer


def _parent(study: Study, seed: seed_model.SeedFiles) -> SeedModel | None:
    if study.plan.parent is None:
        return None
    study.progress.note("the parent's weights: finding them, and hashing every parameter")
    return parent_model.obtain(study.plan.parent, study.loaded, seed, study.store, study.work)


def _named(files: tuple[Artifact, ...], name: str) -> Artifact:
    return next(each for each in files if each.name == name)


def _ledger(study: Study) -> Ledger:
    repository = commitments.find_repository(study.loaded.folder, study.folder)
    return build_ledger(study.loaded.hash, commitments.earlier_commitments(repository))


def _record(
    study: Study,
    tree: source.Source,
    seed: seed_model.SeedFiles,
    tokenizer: Path,
    inputs: PreparedInputs,
    parent: SeedModel | None,
) -> Prepared:
    requirements = contract.hash_file(tree.requirements)[0] if tree.requirements else None
    return Prepared(
        schema="harness/prepared/1",
        plan=study.plan.name,
        plan_hash=study.loaded.hash,
        identity=inputs.identity,
        files=tuple(_artifact(each) for each in inputs.files),
        source_sha256=tree.sha256,
        trainer_sha256=tree.trainer_sha256,
        requirements_sha256=requirements,
        tokenizer_sha256=contract.hash_file(tokenizer)[0],
        seed_model=SeedModel(
            files=seed.files, parameter_root=seed.parameter_root, parameters=seed.parameters
        ),
        parent_model=parent,
        arms={name: TargetCounts(**each.model_dump()) for name, each in inputs.arms.items()},
        roles=inputs.counts,
        damaged=inputs.damaged,
        longest_tokens=max(inputs.longest.values()),
        end_tokens=inputs.end_tokens,
        held_out_wordings=inputs.held_out_wordings,
        replay_source=inputs.replay_source,
        distinct_conversations=inputs.distinct_conversations,
        exposure=inputs.exposure,
        notes=inputs.notes,
    )


def _artifact(file: PreparedFile) -> Artifact:
    return Artifact(name=file.path, sha256=file.sha256, bytes=file.bytes)


WHAT = {
    "plan_hash": "plan.json changed after it was prepared",
    "trainer_sha256": "the trainer changed after the plan was prepared",
    "source_sha256": "what is pushed to hosts changed after the plan was prepared",
    "identity": "the prepared inputs differ from those that were committed",
    "parent_model": "the parent's weights differ from those that were prepared",
    "seed_model": "the seed model differs from the one that was prepared",
}


def _write(study: Study, record: Prepared) -> str:
    """Write prepared.json where there is none, compare with it where there is one.

    Returns the hash of its canonical bytes.
    """
    path = study.prepared_path
    value = record.to_json()
    if path.exists():
        value = _compared(study, value)

    def act() -> Written:
        try:
            if not path.exists():
                contract.write_json(path, value)
        except OSError as error:
            raise Waiting(f"cannot be written ({error.strerror})", where=str(path)) from None
        return Written(sha256=contract.hash_of(value))

    study.journal.effect(
        "prepare/write", Written, intent={"path": path.name}, act=act, adopt=lambda: None
    )
    return contract.hash_of(value)


def _compared(study: Study, value: dict[str, Any]) -> dict[str, Any]:
    """What prepared.json says, when it is what was computed now. Raises Refused."""
    known: dict[str, Any] = load_file(Prepared, study.prepared_path).to_json()
    for name in [*WHAT, *sorted(value)]:
        # The ledger's notes depend on what other studies were committed meanwhile.
        if name != "notes" and known.get(name) != value.get(name):
            raise Refused(
                f"{WHAT.get(name, f'{name} differs from what was prepared')}; "
                "a prepared plan is frozen, and a change is a new plan",
                where=f"{study.prepared_path}#/{name}",
                next_command=command("init", "NEW-NAME", "--from", study.loaded.path),
            )
    return known
