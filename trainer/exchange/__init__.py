"""How gradients are summed over workers."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from trainer.exchange.dense import DenseExchange
from trainer.exchange.local_windows import LocalWindows
from trainer.exchange.none import NoExchange
from trainer.exchange.powersgd import PowerSGD
from trainer.exchange.protocol import Exchange, Sent
from trainer.recipe import Exchange as Recipe

__all__ = ["DenseExchange", "Exchange", "LocalWindows", "NoExchange", "PowerSGD", "Sent", "make"]


def make(recipe: Recipe, workers: int, seed: str, parameters: Mapping[str, Tensor]) -> Exchange:
    """The exchange that a recipe names. The process group must stand, except for 'none'.

    `parameters` are what training begins with.
    """
    if recipe.kind == "none":
        return NoExchange()
    if recipe.kind == "dense":
        return DenseExchange(workers)
    if recipe.kind == "local-windows":
        return LocalWindows(recipe, workers, parameters)
    return PowerSGD(recipe, workers, seed)
