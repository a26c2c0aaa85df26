"""Checkpoints and candidates: folders that are whole or absent.

A checkpoint of a rank holds everything that its next update depends on, beside the prepared
inputs: a folder `update-N` of

    position.json       what it belongs to (`Identity`) and how far it is (`Progress`)
    state.safetensors   parameters, moments, the exchange's state, random state
    losses.jsonl        the lines of losses-R.jsonl so far
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from trainer import tensors
from trainer.contract import ContractError, hash_file, read_json, sync_folder, write_json
from trainer.errors import RecipeError
from trainer.roots import to_array
from trainer.state import State

_COPIED = ("config.json", "tokenizer.json")
_STATE, _LOSSES, _POSITION = "state.safetensors", "losses.jsonl", "position.json"
_PREFIX = "update-"


@dataclass(frozen=True)
class Identity:
    """What a checkpoint belongs to. All of it must be the same to go on from it."""

    recipe: dict[str, Any]
    source_sha256: str
    inputs: dict[str, str]
    model_root: str
    rank: int
    workers: int


@dataclass(frozen=True)
class Progress:
    """How far training is."""

    update: int
    """Updates done."""
    tally: dict[str, Any]
    active_s: float
    """Seconds of updates and what lies between them, of this and earlier attempts."""
    losses: bytes
    """The lines of losses-R.jsonl."""


def write_candidate(
    out: Path, model: Path, parameters: Mapping[str, Tensor], progress: Callable[[], None]
) -> Path:
    """Write `out/candidate`: the parameters, and the configuration and tokenizer of `model`."""

    def fill(folder: Path) -> None:
        write_tensors(folder / "model.safetensors", parameters, progress)
        for name in _COPIED:
            if (model / name).exists():
                copy(model / name, folder / name)

    return whole_folder(out / "candidate", fill)


def write(
    target: Path,
    named: Mapping[str, Tensor],
    identity: Identity,
    progress: Progress,
    tick: Callable[[], None] = lambda: None,
) -> int:
    """Write a checkpoint of tensors on the host. Returns its bytes."""
    size = 0

    def fill(folder: Path) -> None:
        nonlocal size
        digest = hashlib.sha256()
        write_tensors(folder / _STATE, named, tick, digest.update)
        (folder / _LOSSES).write_bytes(progress.losses)
        with open(folder / _LOSSES, "rb") as handle:
            os.fsync(handle.fileno())
        write_json(
            folder / _POSITION,
            {
                "identity": asdict(identity),
                "update": progress.update,
                "tally": progress.tally,
                "active_seconds": progress.active_s,
                "state_sha256": digest.hexdigest(),
                "losses_sha256": hash_file(folder / _LOSSES)[0],
            },
        )
        size = sum(path.stat().st_size for path in folder.iterdir())

    whole_folder(target, fill)
    return size


def place(folder: Path, update: int) -> Path:
    """Where the checkpoint after so many updates lies."""
    return folder / f"{_PREFIX}{update}"


def whole_ones(folder: Path) -> dict[int, Path]:
    """The checkpoints in a folder by their update. Every byte is hashed; one that does not match
    counts as absent.
    """
    found = {}
    for path in folder.glob(f"{_PREFIX}*") if folder.is_dir() else ():
        number = path.name.removeprefix(_PREFIX)
        if number.isdecimal() and _is_whole(path):
            found[int(number)] = path
    return found


def _is_whole(path: Path) -> bool:
    try:
        position = read_json(path / _POSITION)
        wanted = [position["state_sha256"], position["losses_sha256"]]
        return wanted == [hash_file(path / name)[0] for name in (_STATE, _LOSSES)]
    except (OSError, ContractError, KeyError, TypeError):
        return False


def require_same(path: Path, identity: Identity) -> None:
    """Raises RecipeError naming what differs between a checkpoint and what is to be done."""
    was, now = read_json(path / _POSITION)["identity"], asdict(identity)
    differs = list(_differences(was, now, ""))
    if differs:
        raise RecipeError(f"the checkpoint {path} cannot be gone on from: {'; '.join(differs[:5])}")


def _differences(was: Any, now: Any, where: str) -> list[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        names = sorted(was.keys() | now.keys())
        return [
            said
            for name in names
            for said in _differences(was.get(name), now.get(name), f"{where}/{name}")
        ]
    return [] if was == now else [f"{where} was {_short(was)} and is {_short(now)}"]


def _short(value: Any) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:12]}..."


def read(path: Path, state: State) -> Progress:
    """Put a checkpoint's tensors into `state`."""
    position = read_json(path / _POSITION)
    state.restore(position["update"], load_file(path / _STATE))
    return Progress(
        position["update"],
        position["tally"],
        position["active_seconds"],
        (path / _LOSSES).read_bytes(),
    )


def whole_folder(target: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a folder under a temporary name and rename it: killed before that, it is absent.

    Left-overs of a killed attempt are removed; a folder already there is replaced.
    """
    temporary = target.with_name(f".{target.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    fill(temporary)
    sync_folder(temporary)
    if target.exists():
        shutil.rmtree(target)
    temporary.rename(target)
    sync_folder(target.parent)
    return target


def write_tensors(
    path: Path,
    named: Mapping[str, Tensor],
    progress: Callable[[], None] = lambda: None,
    see: Callable[[bytes | memoryview], object] = lambda piece: None,
) -> None:
    """Write tensors to a safetensors file, one at a time on the host. `see` is given its bytes."""
    shapes = {
        name: (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
        for name, tensor in named.items()
    }
    tensors.write(path, shapes, lambda name: to_array(named[name]), progress, see)


def copy(source: Path, target: Path) -> None:
    """Copy one file and fsync the copy."""
    shutil.copyfile(source, target)
    with open(target, "rb") as handle:
        os.fsync(handle.fileno())
