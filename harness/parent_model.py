"""The weights of an earlier study's candidate, found in the store or a folder by their hashes."""

from __future__ import annotations

import math
from pathlib import Path

from harness.errors import BadInput, Refused, Waiting, command
from harness.plan import LoadedPlan
from harness.plan.parent import Parent
from harness.prepared import SeedModel
from harness.seed_model import SeedFiles
from harness.store.protocol import Artifact, Store
from trainer import contract

WEIGHTS = "model.safetensors"


def obtain(
    parent: Parent, loaded: LoadedPlan, seed: SeedFiles, store: Store, work: Path
) -> SeedModel:
    """The parent's weights first, then the seed model's configuration and tokenizer beside them.

    `loaded` is the plan that names the parent, `work` a folder for one copy of the weights. Raises
    Waiting when they are nowhere, with the command that makes them again; Refused when their
    parameter root is another one; BadInput when they are no model of the seed's size.
    """
    file = Artifact(name=WEIGHTS, sha256=parent.sha256, bytes=parent.bytes)
    copy = work / "parent.safetensors"
    if store.has(file.sha256):
        store.fetch(file, copy)
        found, where = copy, f"the store's object {file.sha256}"
    else:
        found = _in_folder(parent, loaded)
        where = str(found)
    rows = contract.parameter_listing(found)
    root = contract.hash_of(rows)
    if root != parent.parameter_root:
        raise Refused(
            f"has the parameter root {root}, and the plan names {parent.parameter_root}",
            where=where,
            next_command=_again(parent, loaded),
        )
    parameters = sum(math.prod(row["shape"]) for row in rows)
    if parameters != seed.parameters:
        raise BadInput(
            f"the parent has {parameters} parameters and the seed model {seed.parameters}",
            where=f"{loaded.path}#/parent",
        )
    if found != copy:
        store.put(found, name=WEIGHTS)
    copy.unlink(missing_ok=True)
    beside = tuple(each for each in seed.files if each.name != WEIGHTS)
    return SeedModel(files=(file, *beside), parameter_root=root, parameters=parameters)


def _in_folder(parent: Parent, loaded: LoadedPlan) -> Path:
    """The file in the declared folder. Raises Waiting when it is not there."""
    folder = loaded.folder / parent.folder if parent.folder else None
    path = folder / WEIGHTS if folder else None
    if path is None or not path.is_file():
        also = f" nor in {folder}" if folder else ""
        raise Waiting(
            f"the weights of '{parent.candidate}' of '{parent.study}' are neither in the store"
            f"{also}; running its plan again makes them, with the same parameter root on the same "
            "kind of device",
            where=f"{loaded.path}#/parent",
            next_command=_again(parent, loaded),
        )
    digest, _ = contract.hash_file(path)
    if digest != parent.sha256:
        root = contract.parameter_root(path)
        same = "the right parameter root and another hash" if root == parent.parameter_root else (
            f"the parameter root {root}"
        )  # fmt: skip
        raise Refused(
            f"has {same}, and the plan names the root {parent.parameter_root} in the object "
            f"{parent.sha256}",
            where=str(path),
            next_command=_again(parent, loaded),
        )
    return path


def _again(parent: Parent, loaded: LoadedPlan) -> str:
    return command("run", (loaded.folder / parent.plan).resolve(), "--local")
