"""One AdamW update from global gradients."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from trainer.recipe import Optimizer


def adamw(parameters: Mapping[str, nn.Parameter], recipe: Optimizer) -> torch.optim.AdamW:
    """AdamW with decoupled weight decay (Loshchilov and Hutter 2019), state in the parameters'
    own precision. Matrices decay; vectors (norm gains, biases) do not.
    """
    matrices = [parameter for parameter in parameters.values() if parameter.ndim >= 2]
    vectors = [parameter for parameter in parameters.values() if parameter.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=recipe.lr,
        betas=(recipe.beta1, recipe.beta2),
        eps=recipe.epsilon,
        fused=True,
    )


def clip(gradients: Mapping[str, Tensor], bound: float | None) -> Tensor:
    """Scale gradients in place so that their joint L2 norm is at most `bound`.

    Returns the norm before scaling. The gradients must already be the global ones: all ranks
    then clip alike.
    """
    norm = torch.nn.utils.get_total_norm(list(gradients.values()), foreach=True)
    if bound is not None:
        scale = torch.clamp(bound / (norm + 1e-6), max=1.0)
        torch._foreach_mul_(list(gradients.values()), scale)
    return norm


def apply(optimizer: torch.optim.AdamW, lr: float) -> None:
    """Change the parameters, then let their gradients go."""
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
