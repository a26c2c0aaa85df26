"""Learning rate by update."""

from __future__ import annotations

import math

from trainer.recipe import Schedule


def lr_share(schedule: Schedule, update: int, updates: int) -> float:
    """What share of the recipe's lr update `update` of `updates` (from 1) uses.

    Linear warm-up reaches 1 at update `warmup_updates`. From there 'linear' and 'cosine'
    (half a wave) fall to `floor`, reached at the last update; 'constant' stays at 1.
    """
    warmup = schedule.warmup_updates
    if update <= warmup:
        return update / warmup
    if schedule.kind == "constant":
        return 1.0
    progress = (update - warmup) / (updates - warmup)
    fall = progress if schedule.kind == "linear" else (1 - math.cos(math.pi * progress)) / 2
    return 1.0 - (1.0 - schedule.floor) * fall
