"""One worker: its gradient is the global one."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from trainer.exchange.protocol import Sent


class NoExchange:
    """Nothing is said to anybody, and nothing is changed."""

    def reduce(self, gradients: Mapping[str, Tensor], update: int) -> Sent:
        return Sent()

    def total(self, values: Tensor) -> Tensor:
        return values

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        pass
