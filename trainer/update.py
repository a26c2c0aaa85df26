"""One AdamW update from global gradients."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw  # not the class: constructing that imports torch's compiler

from trainer.recipe import Optimizer


class AdamW:
    """AdamW with decoupled weight decay (Loshchilov and Hutter 2019), by torch's fused kernel.

    Moments are kept by parameter name, in the parameters' own precision. Matrices decay;
    vectors (norm gains, biases) do not.
    """

    def __init__(self, parameters: Mapping[str, nn.Parameter], recipe: Optimizer) -> None:
        self._parameters = dict(parameters)
        self._recipe = recipe
        self.first = {name: torch.zeros_like(p) for name, p in self._parameters.items()}
        self.second = {name: torch.zeros_like(p) for name, p in self._parameters.items()}

    def step(self, lr: float, update: int) -> None:
        """Change the parameters by their gradients, and let those go.

        `update` counts from 1. Parameters without a gradient are left alone.
        """
        names = [name for name, p in self._parameters.items() if p.grad is not None]
        matrices = [name for name in names if self._parameters[name].ndim >= 2]
        vectors = [name for name in names if self._parameters[name].ndim < 2]
        self._step(matrices, lr, update, self._recipe.weight_decay)
        self._step(vectors, lr, update, 0.0)
        for parameter in self._parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def _step(self, names: list[str], lr: float, update: int, weight_decay: float) -> None:
        if not names:
            return
        parameters = [self._parameters[name] for name in names]
        done_before = torch.full((len(names),), float(update - 1), device=parameters[0].device)
        adamw(
            parameters,  # type: ignore[arg-type] # a list of Parameter is one of Tensor
            [p.grad for p in parameters if p.grad is not None],
            [self.first[name] for name in names],
            [self.second[name] for name in names],
            [],
            list(done_before.unbind()),
            fused=True,
            amsgrad=False,
            beta1=self._recipe.beta1,
            beta2=self._recipe.beta2,
            lr=lr,
            weight_decay=weight_decay,
            eps=self._recipe.epsilon,
            maximize=False,
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
