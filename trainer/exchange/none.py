"""One worker: its gradient is the global one."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from trainer.exchange.protocol import Sent


class NoExchange:
    """Nothing is said to anybody, and nothing is changed."""

    def reduce(self, gradients: Mapping[str, Tensor], update: int) -> Sent:
        """Leaves `gradients` alone."""
        return Sent()

    def settle(self, parameters: Mapping[str, Tensor], update: int) -> Sent:
        """Nothing is left to agree on."""
        return Sent()

    def total(self, values: Tensor) -> Tensor:
        """The sum over ranks of a few numbers."""
        return values

    def state(self) -> dict[str, Tensor]:
        """Nothing is kept."""
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Nothing was kept."""

    def report(self) -> dict[str, object]:
        """Nothing of its own."""
        return {}
