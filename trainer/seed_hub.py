"""A snapshot of a model hub: safetensors shards in any float type, config.json, tokenizer.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from trainer.contract import read_json
from trainer.errors import TrainerError
from trainer.roots import to_array
from trainer.seed import SeedModel
from trainer.tensors import Array

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_HEAD, _EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"
_DERIVED = ".rotary_emb.inv_freq"
"""Old files hold this table, which follows from the configuration."""
_OUTDATED = ("torch_dtype", "_name_or_path")


def open_snapshot(folder: Path) -> SeedModel:
    """The model in a snapshot. Raises TrainerError when files are missing or do not fit."""
    config = _config(folder)
    shards = _shards(folder)
    homes: dict[str, Any] = {}
    for shard in shards.values():
        opened = safe_open(shard, framework="pt")
        for name in opened.keys():  # type: ignore[no-untyped-call] # noqa: SIM118 - not a dict
            if not name.endswith(_DERIVED):
                homes[name] = opened
    if config.get("tie_word_embeddings") and _HEAD in homes:
        _check_tied(homes)
        del homes[_HEAD]
    shapes = {name: tuple(home.get_slice(name).get_shape()) for name, home in homes.items()}

    def values(name: str) -> Array:
        tensor: torch.Tensor = homes[name].get_tensor(name)
        if not tensor.is_floating_point():
            raise TrainerError(f"the parameter {name} is {tensor.dtype}, not floating point")
        return to_array(tensor.float())

    read = {**shards, "config.json": folder / "config.json"}
    read["tokenizer.json"] = folder / "tokenizer.json"
    return SeedModel(shapes, values, config, read["tokenizer.json"].read_bytes(), read)


def _config(folder: Path) -> dict[str, Any]:
    for name in ("config.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise TrainerError(f"the snapshot {folder} holds no {name}")
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise TrainerError(f"{folder}/config.json is not an object")
    return {key: value for key, value in config.items() if key not in _OUTDATED}


def _shards(folder: Path) -> dict[str, Path]:
    """The snapshot's weight files by name."""
    if (folder / _SINGLE).is_file():
        return {_SINGLE: folder / _SINGLE}
    if not (folder / _INDEX).is_file():
        raise TrainerError(f"the snapshot {folder} holds neither {_SINGLE} nor {_INDEX}")
    names = sorted(set(read_json(folder / _INDEX)["weight_map"].values()))
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise TrainerError(f"the snapshot {folder} lacks {missing[0]}")
    return {name: folder / name for name in names}


def _check_tied(homes: dict[str, Any]) -> None:
    head = homes[_HEAD].get_tensor(_HEAD)
    if not torch.equal(head, homes[_EMBEDDING].get_tensor(_EMBEDDING)):
        raise TrainerError("the head differs from the embedding that it is declared tied to")
