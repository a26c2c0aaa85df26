"""The task `compare`: how far two models' parameters are apart, tensor by tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from trainer.contract import parameter_root
from trainer.errors import TrainerError
from trainer.heartbeat import Heartbeat
from trainer.job import Job
from trainer.later import Later
from trainer.ranks import Rank
from trainer.receipts import write_receipt
from trainer.recipe import Compare
from trainer.tensors import Array, open_arrays

_WEIGHTS = "model.safetensors"
_PIECE = 4 * 1024 * 1024
"""Numbers compared at once, in float64."""


@dataclass
class Distance:
    """Sums over all parameters."""

    difference_squares: float = 0.0
    against_squares: float = 0.0
    max_abs: float = 0.0

    def add(self, ours: Array, theirs: Array) -> None:
        """Take in one tensor of each, in bounded memory."""
        ours, theirs = ours.reshape(-1), theirs.reshape(-1)
        for start in range(0, ours.size, _PIECE):
            right = theirs[start : start + _PIECE].astype(np.float64)
            difference = ours[start : start + _PIECE].astype(np.float64) - right
            self.difference_squares += float(difference @ difference)
            self.against_squares += float(right @ right)
            self.max_abs = max(self.max_abs, float(np.abs(difference).max()))

    def relative_l2(self) -> float:
        """L2 norm of the difference over the L2 norm of the second model."""
        if self.against_squares == 0:
            raise TrainerError("the second model is zero everywhere; no distance is relative to it")
        return math.sqrt(self.difference_squares / self.against_squares)


def distance(ours: Path, theirs: Path) -> tuple[Distance, int]:
    """(distance, number of tensors) of two files. Raises TrainerError when they do not match."""
    left, right = open_arrays(ours), open_arrays(theirs)
    if {name: array.shape for name, array in left.items()} != {
        name: array.shape for name, array in right.items()
    }:
        raise TrainerError(f"{ours} and {theirs} hold tensors of different names or shapes")
    found = Distance()
    for name in sorted(left):
        found.add(left[name], right[name])
    return found, len(left)


def run(job: Job, recipe: Compare) -> None:
    """Write the receipt. Nothing larger than a piece of a tensor is held in memory."""
    ours = job.model / _WEIGHTS
    theirs = job.beside_inputs(recipe.against) / _WEIGHTS
    Heartbeat(job.out / "heartbeat-0.json").beat("compare", 0, 1)
    with Later(parameter_root, ours) as root, Later(parameter_root, theirs) as against_root:
        found, tensors = distance(ours, theirs)
        body = {
            "relative_l2": found.relative_l2(),
            "max_abs": found.max_abs,
            "tensors": tensors,
            "root": root.result(),
            "against_root": against_root.result(),
        }
        rank = Rank(0, 1, torch.device("cpu"))
        name = f"{recipe.against}/{_WEIGHTS}"
        write_receipt(job, rank, body, inputs={name: theirs}, model_root=root.result())
