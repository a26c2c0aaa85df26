"""From measured updates to a pair of other hosts, on paper. Pure.

Assumptions, all printed with the result: an update's computation scales with the dense bf16 rate
(the same share of it is reached); an exchange's own computation scales with memory bandwidth;
bytes travel at the link's rate times what was measured of it; nothing of the exchange hides behind
the backward pass; the first updates of an arm (dense or of higher rank) are priced as themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BITS = 8


@dataclass(frozen=True)
class Device:
    """Rates of a GPU."""

    name: str
    bf16_flops: float
    """Dense, a second."""
    memory_bytes_per_s: float


H200 = Device("H200", 790e12, 4.3e12)
"""Measured (facts of this project): a large product of random matrices, a large copy."""
L40S = Device("L40S", 362e12, 0.864e12)
"""Its maker's datasheet, unmeasured."""


@dataclass(frozen=True)
class Exchanged:
    """One kind of update as a pair measured it without a limit on its network."""

    name: str
    compute_s: float
    """Of an update of the pair, the exchange left out."""
    exchange_s: float
    """The exchange's own computation; its transfer is nearly free there."""
    sent_bytes: int
    """By each host."""


def transfer_s(sent_bytes: float, gbit: float, efficiency: float = 1.0) -> float:
    """Seconds that bytes take one way; both ways run at once."""
    return sent_bytes * BITS / (gbit * 1e9 * efficiency)


def update_s(
    kind: Exchanged, gbit: float, *, measured: Device, other: Device, efficiency: float
) -> float:
    """An update of a pair of `other` devices."""
    slower = measured.bf16_flops / other.bf16_flops
    narrower = measured.memory_bytes_per_s / other.memory_bytes_per_s
    return (
        kind.compute_s * slower
        + kind.exchange_s * narrower
        + transfer_s(kind.sent_bytes, gbit, efficiency)
    )


def speed_up(
    alone_s: float, phases: Sequence[tuple[int, Exchanged]], gbit: float, *,
    measured: Device = H200, other: Device = L40S, efficiency: float = 1.0,
) -> float:  # fmt: skip
    """How much faster than one device a pair does an arm of phases (updates, their kind)."""
    updates = sum(count for count, _ in phases)
    one = alone_s * measured.bf16_flops / other.bf16_flops * updates
    two = sum(
        count * update_s(kind, gbit, measured=measured, other=other, efficiency=efficiency)
        for count, kind in phases
    )
    return one / two


def total_bytes(phases: Sequence[tuple[int, Exchanged]], hosts: int = 2) -> int:
    """Of all hosts together over an arm."""
    return hosts * sum(count * kind.sent_bytes for count, kind in phases)
