"""How gradients are summed over workers."""

from __future__ import annotations

from trainer.exchange.dense import DenseExchange
from trainer.exchange.none import NoExchange
from trainer.exchange.powersgd import PowerSGD
from trainer.exchange.protocol import Exchange, Sent
from trainer.recipe import Exchange as Recipe

__all__ = ["DenseExchange", "Exchange", "NoExchange", "PowerSGD", "Sent", "make"]


def make(recipe: Recipe, workers: int, seed: str) -> Exchange:
    """The exchange that a recipe names. The process group must stand, except for 'none'."""
    if recipe.kind == "none":
        return NoExchange()
    if recipe.kind == "dense":
        return DenseExchange(workers)
    return PowerSGD(recipe, workers, seed)
