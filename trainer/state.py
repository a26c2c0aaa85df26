"""The one object that training changes. What a checkpoint holds derives from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainer.exchange import Exchange
from trainer.model import Network
from trainer.update import AdamW

_PARAMETER, _FIRST, _SECOND, _EXCHANGE = "parameter.", "first.", "second.", "exchange."
_RNG = "rng.cpu"
_RNG_CUDA = "rng.cuda"


@dataclass
class State:
    """Everything that decides what the next update does, beside the prepared inputs."""

    network: Network
    optimizer: AdamW
    exchange: Exchange
    update: int = 0
    """Updates done; the next one reads the schedule there."""

    def parameters(self) -> Mapping[str, nn.Parameter]:
        """What is trained, by name."""
        return self.network.parameters()

    def gradients(self) -> dict[str, Tensor]:
        """This update's gradients by parameter name, contiguous; zeros where there was none."""
        gradients = {}
        for name, parameter in self.parameters().items():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            elif not parameter.grad.is_contiguous():
                parameter.grad = parameter.grad.contiguous()
            gradients[name] = parameter.grad
        return gradients

    def tensors(self) -> dict[str, Tensor]:
        """Everything of this rank between two updates: parameters, moments, what the exchange
        keeps, random state. Not copies, but for random state.
        """
        named: dict[str, Tensor] = {
            f"{prefix}{name}": tensor
            for prefix, group in self._groups().items()
            for name, tensor in group.items()
        }
        named |= {f"{_EXCHANGE}{name}": value for name, value in self.exchange.state().items()}
        named[_RNG] = torch.get_rng_state()
        if torch.cuda.is_available():
            named[_RNG_CUDA] = torch.cuda.get_rng_state()
        return named

    @torch.no_grad()
    def restore(self, update: int, named: Mapping[str, Tensor]) -> None:
        """Go on from what `tensors` gave after `update` updates."""
        self.update = update
        for prefix, group in self._groups().items():
            for name, tensor in group.items():
                tensor.copy_(named[f"{prefix}{name}"])
        self.exchange.restore(
            {
                name.removeprefix(_EXCHANGE): tensor
                for name, tensor in named.items()
                if name.startswith(_EXCHANGE)
            }
        )
        torch.set_rng_state(named[_RNG].cpu())
        if _RNG_CUDA in named:
            torch.cuda.set_rng_state(named[_RNG_CUDA].cpu())

    def _groups(self) -> dict[str, Mapping[str, Tensor]]:
        return {
            _PARAMETER: self.parameters(),
            _FIRST: self.optimizer.first,
            _SECOND: self.optimizer.second,
        }
