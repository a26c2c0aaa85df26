"""The one object that training changes. What a full-state checkpoint holds derives from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainer.exchange import Exchange
from trainer.model import Network
from trainer.update import AdamW

_FIRST, _SECOND = "first.", "second."
_EXCHANGE = "exchange."
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

    def shared_tensors(self) -> dict[str, Tensor]:
        """What every rank holds alike, beside the parameters: the optimizer's moments."""
        first, second = self.optimizer.first, self.optimizer.second
        return {f"{_FIRST}{name}": tensor for name, tensor in first.items()} | {
            f"{_SECOND}{name}": tensor for name, tensor in second.items()
        }

    def rank_tensors(self) -> dict[str, Tensor]:
        """What belongs to this rank alone: exchange state and random state."""
        tensors = {f"{_EXCHANGE}{name}": value for name, value in self.exchange.state().items()}
        tensors[_RNG] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors[_RNG_CUDA] = torch.cuda.get_rng_state()
        return tensors

    def restore(
        self, update: int, shared: Mapping[str, Tensor], of_rank: Mapping[str, Tensor]
    ) -> None:
        """Go on from saved tensors; the network must hold the saved parameters already."""
        self.update = update
        for name in self.parameters():
            self.optimizer.first[name].copy_(shared[f"{_FIRST}{name}"])
            self.optimizer.second[name].copy_(shared[f"{_SECOND}{name}"])
        self.exchange.restore(
            {
                name.removeprefix(_EXCHANGE): tensor
                for name, tensor in of_rank.items()
                if name.startswith(_EXCHANGE)
            }
        )
        torch.set_rng_state(of_rank[_RNG].cpu())
        if _RNG_CUDA in of_rank:
            torch.cuda.set_rng_state(of_rank[_RNG_CUDA].cpu())
