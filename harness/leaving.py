"""When what is preserved must begin to leave the hosts, so that it is whole before the deadline.

Pure. The rate is the slowest one that was measured on these hosts; without one a slow rate is
assumed, because too early costs minutes of an arm and too late costs the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

ASSUMED_BYTES_PER_S = 20e6
"""Of a host whose uploads were not measured: far below what S3 takes from any EC2 host."""
MARGIN = 2.0
"""Twice the measured time: a second attempt of every transfer fits."""
FIXED_S = 300.0
"""Sealing, committing and ending hosts, whatever the sizes."""


@dataclass(frozen=True)
class Pace:
    """What leaving takes on one kind of fleet, before anything of it was measured."""

    fixed_s: float = FIXED_S
    bytes_per_s: float = ASSUMED_BYTES_PER_S


PACES = {
    "stack": Pace(),
    "hosts-file": Pace(fixed_s=30.0),
    "local": Pace(fixed_s=5.0, bytes_per_s=200e6),
}
"""By the fleet's kind. What lies on the user's own machines is still there after the deadline, so
only ending the jobs and the transfers must fit; a local store is a disk."""


def slowest(rates: Sequence[tuple[int, float]], otherwise: float = ASSUMED_BYTES_PER_S) -> float:
    """Bytes a second of the slowest transfer, from (bytes, seconds) of each.

    Transfers of less than 1 MiB say more about latency than about the rate and are left out.
    """
    counted = [size / seconds for size, seconds in rates if size >= 1 << 20 and seconds > 0]
    return min(counted, default=otherwise)


def seconds_to_leave(
    upload_bytes: int, readback_bytes: int, bytes_per_s: float, fixed_s: float = FIXED_S
) -> float:
    """Seconds that uploading and then reading everything back may take, margin included.

    Raises ValueError for a rate that is not above zero or a negative size.
    """
    if bytes_per_s <= 0 or upload_bytes < 0 or readback_bytes < 0:
        raise ValueError("a rate is above zero and sizes are not negative")
    return fixed_s + MARGIN * (upload_bytes + readback_bytes) / bytes_per_s


def point_of_no_return(
    deadline: datetime,
    upload_bytes: int,
    readback_bytes: int,
    bytes_per_s: float,
    fixed_s: float = FIXED_S,
) -> datetime:
    """The last moment to stop an arm: from here on only preserving still fits."""
    needed = seconds_to_leave(upload_bytes, readback_bytes, bytes_per_s, fixed_s)
    return deadline - timedelta(seconds=needed)
