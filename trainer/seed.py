"""The task `seed`: any model source, once, into FP32 safetensors, a shape and a tokenizer.

What comes out is kept by hash and is what every later task starts from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainer import tensors
from trainer.contract import (
    SEED_FILES,
    hash_file,
    hash_of,
    parameter_listing,
    write_atomic,
    write_json,
)
from trainer.heartbeat import Heartbeat
from trainer.job import Job
from trainer.ranks import Rank
from trainer.receipts import write_receipt
from trainer.recipe import Seed


@dataclass(frozen=True)
class SeedModel:
    """A model ready to be written: nothing large is read before `get` is called."""

    shapes: Mapping[str, tuple[int, ...]]
    """Of every parameter under its transformers name; a tied head only as the embedding."""
    get: Callable[[str], tensors.Array]
    """The float32 values of one parameter."""
    config: Mapping[str, Any]
    tokenizer: bytes
    """tokenizer.json."""
    read: Mapping[str, Path]
    """The source's files, by name."""


def run(job: Job, recipe: Seed) -> None:
    """Write the three seed files and the receipt."""
    heart = Heartbeat(job.out / "heartbeat-0.json")
    heart.beat("seed", 0, 1)
    model = open_source(job, recipe)
    write_seed(job.out, model, heart.tick)
    rows = parameter_listing(job.out / "model.safetensors")
    body = {
        "parameter_root": hash_of(rows),
        "parameters": sum(int(np.prod(row["shape"], dtype=np.int64)) for row in rows),
        "config_sha256": hash_file(job.out / "config.json")[0],
        "tokenizer_sha256": hash_file(job.out / "tokenizer.json")[0],
    }
    write_receipt(job, Rank(0, 1, torch.device("cpu")), body, inputs=model.read)
    heart.beat("done", 1, 1)


def open_source(job: Job, recipe: Seed) -> SeedModel:
    """The source that the recipe names. Raises TrainerError when it is not understood."""
    source = recipe.source
    if source.kind == "package":
        from trainer.seed_gguf import open_gguf

        assert source.file is not None
        return open_gguf(job.input(source.file), source.file)
    if source.kind == "hub":
        from trainer.seed_hub import open_snapshot

        return open_snapshot(job.input("."))
    from trainer.seed_tiny import tiny_model

    return tiny_model()


def write_seed(out: Path, model: SeedModel, progress: Callable[[], None] = lambda: None) -> None:
    """Write model.safetensors, config.json and tokenizer.json. No token is padding."""
    weights, config, tokenizer = (out / name for name in SEED_FILES)
    shapes = {name: ("float32", shape) for name, shape in model.shapes.items()}
    tensors.write(weights, shapes, model.get, progress)
    write_json(config, {**model.config, "pad_token_id": None, "dtype": "float32"})
    write_atomic(tokenizer, model.tokenizer)
