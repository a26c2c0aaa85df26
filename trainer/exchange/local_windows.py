"""Local windows (DiLoCo: Douillard et al. 2023): ranks train apart and meet every so often.

Inside a window each rank takes its own optimizer steps on its own documents; nothing is sent but
the few numbers of the reported loss. At a window's end, with x the parameters that all ranks began
the window with and x_i where rank i ended,
    d = mean_i(x - x_i),   v = momentum v + d,   x = x - lr (d + momentum v)
(Nesterov's momentum on d as a gradient), and every rank goes on from the new x. Moments of the
inner optimizer stay with their rank.

A rank's share of the gradient arrives divided by the update's global weighted target count. Times
the number of ranks it is the rank's own estimate of the whole, so that the ranks' mean is exactly
what dense exchange would give.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from trainer.exchange.dense import sum_tensors, total
from trainer.exchange.protocol import Sent
from trainer.recipe import Exchange as Recipe

_BEGAN, _VELOCITY, _NORMS = "began.", "velocity.", "norms"


class LocalWindows:
    """Keeps the window's beginning and the outer velocity, in the parameters' precision."""

    def __init__(self, recipe: Recipe, workers: int, parameters: Mapping[str, Tensor]) -> None:
        assert recipe.window is not None
        assert recipe.outer_lr is not None and recipe.outer_momentum is not None
        self._window = recipe.window
        self._lr, self._momentum = recipe.outer_lr, recipe.outer_momentum
        self._workers = workers
        self._began = {name: parameters[name].detach().clone() for name in sorted(parameters)}
        self._velocity = {name: torch.zeros_like(began) for name, began in self._began.items()}
        self._norms: list[float] = []

    def reduce(self, gradients: Mapping[str, Tensor], update: int) -> Sent:
        """Mutates `gradients` into this rank's own estimate of the whole. Sends nothing."""
        torch._foreach_mul_(list(gradients.values()), self._workers)
        return Sent()

    @torch.no_grad()
    def settle(self, parameters: Mapping[str, Tensor], update: int) -> Sent:
        """At a window's end: mutates `parameters` into what all ranks go on from."""
        if update % self._window:
            return Sent()
        moved = [parameters[name] for name in self._began]
        began, velocity = list(self._began.values()), list(self._velocity.values())
        torch._foreach_neg_(moved)
        torch._foreach_add_(moved, began)
        sent = sum_tensors(moved, self._workers)
        torch._foreach_div_(moved, self._workers)
        self._norms.append(float(torch.nn.utils.get_total_norm(moved)))
        torch._foreach_mul_(velocity, self._momentum)
        torch._foreach_add_(velocity, moved)
        torch._foreach_add_(moved, velocity, alpha=self._momentum)
        torch._foreach_add_(began, moved, alpha=-self._lr)
        torch._foreach_copy_(moved, began)
        return sent

    def total(self, values: Tensor) -> Tensor:
        """The sum over ranks of a few numbers."""
        return total(values)

    def state(self) -> dict[str, Tensor]:
        """The window's beginning, the velocity, and the norms so far."""
        began = {f"{_BEGAN}{name}": tensor for name, tensor in self._began.items()}
        velocity = {f"{_VELOCITY}{name}": tensor for name, tensor in self._velocity.items()}
        return began | velocity | {_NORMS: torch.tensor(self._norms, dtype=torch.float64)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave."""
        for name in self._began:
            self._began[name].copy_(state[f"{_BEGAN}{name}"])
            self._velocity[name].copy_(state[f"{_VELOCITY}{name}"])
        self._norms = state[_NORMS].tolist()

    def report(self) -> dict[str, object]:
        """Every outer update, with the norm of what the ranks moved on average."""
        return {
            "outer_updates": [
                {"update": self._window * number, "norm": norm}
                for number, norm in enumerate(self._norms, start=1)
            ]
        }
