"""Everything that ranks say to each other about updates goes through an `Exchange`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True)
class Sent:
    """What one rank moved for one update, counted from the sizes it handed over."""

    sent_bytes: int = 0
    received_bytes: int = 0

    def __add__(self, other: Sent) -> Sent:
        return Sent(self.sent_bytes + other.sent_bytes, self.received_bytes + other.received_bytes)


def all_reduce_bytes(payload_bytes: int, workers: int) -> Sent:
    """What a bandwidth-optimal all-reduce makes each of `workers` ranks send and receive.

    2 (n - 1) / n of the payload (Patarasuk and Yuan 2009): the payload itself for two ranks.
    """
    moved = 2 * (workers - 1) * payload_bytes // workers
    return Sent(moved, moved)


class Exchange(Protocol):
    """Sums over ranks. Every rank calls the same methods in the same order."""

    def reduce(self, gradients: Mapping[str, Tensor], update: int) -> Sent:
        """Turn each rank's share of the gradient into the one that its optimizer steps by.

        Mutates `gradients`: on return each tensor holds the sum over ranks, exact or
        approximate, bit for bit the same on every rank (local windows: the rank's own estimate
        of it). Shares are already divided by the update's global weighted target count, so
        nothing is averaged. `update` counts from 1.
        """

    def settle(self, parameters: Mapping[str, Tensor], update: int) -> Sent:
        """After the optimizer's step of `update`: what ranks still have to agree on.

        May mutate `parameters`. After the last update they are the same on every rank.
        """

    def total(self, values: Tensor) -> Tensor:
        """The sum over ranks of a few numbers (not counted)."""

    def state(self) -> dict[str, Tensor]:
        """What this rank must keep to go on exactly; empty if nothing."""

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state` gave."""

    def report(self) -> dict[str, object]:
        """What the receipt says about it beside bytes."""
