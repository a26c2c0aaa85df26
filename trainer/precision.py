"""In which precision what is computed. Parameters, gradients and moments are FP32 always."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trainer.recipe import Train

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Precision:
    """Of one forward and backward pass."""

    compute: torch.dtype = torch.float32
    """Operands of matrix products and attention (what autocast narrows)."""
    residual: torch.dtype = torch.float32
    """The stream that every layer adds to."""
    head: str = "rounded"
    """Logits: 'rounded' to `compute`, as autocast has them; 'wide': operands in `compute`,
    results FP32; 'fp32': operands FP32 too."""

    @classmethod
    def of(cls, recipe: Train) -> Precision:
        """What a recipe asks for."""
        compute = _DTYPES[recipe.autocast or "fp32"]
        if recipe.packed is None:
            return cls(compute)
        return cls(compute, _DTYPES[recipe.packed.residual], recipe.packed.head)
