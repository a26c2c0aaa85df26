"""The one object that training changes. What a full-state checkpoint holds derives from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainer.exchange import Exchange
from trainer.model import Network

_MOMENTS = ("exp_avg", "exp_avg_sq")
_RNG = "rng.cpu"
_RNG_CUDA = "rng.cuda"


@dataclass
class State:
    """Everything that decides what the next update does, beside the prepared inputs."""

    network: Network
    optimizer: torch.optim.AdamW
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
        tensors = {}
        for name, parameter in self.parameters().items():
            for moment in _MOMENTS:
                if parameter in self.optimizer.state:
                    tensors[f"{moment}.{name}"] = self.optimizer.state[parameter][moment]
        return tensors

    def rank_tensors(self) -> dict[str, Tensor]:
        """What belongs to this rank alone: exchange state and random state."""
        tensors = {f"exchange.{name}": value for name, value in self.exchange.state().items()}
        tensors[_RNG] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors[_RNG_CUDA] = torch.cuda.get_rng_state()
        return tensors

    def restore(
        self, update: int, shared: Mapping[str, Tensor], of_rank: Mapping[str, Tensor]
    ) -> None:
        """Go on from saved tensors; the network must hold the saved parameters already."""
        self.update = update
        for name, parameter in self.parameters().items():
            moments = {moment: shared.get(f"{moment}.{name}") for moment in _MOMENTS}
            if any(value is None for value in moments.values()):
                continue
            self.optimizer.state[parameter] = {
                "step": torch.tensor(float(update), device=parameter.device),
                **{key: value.to(parameter) for key, value in moments.items() if value is not None},
            }
        prefix = "exchange."
        self.exchange.restore(
            {name[len(prefix) :]: value for name, value in of_rank.items() if name[:9] == prefix}
        )
        torch.set_rng_state(of_rank[_RNG].cpu())
        if _RNG_CUDA in of_rank:
            torch.cuda.set_rng_state(of_rank[_RNG_CUDA].cpu())
