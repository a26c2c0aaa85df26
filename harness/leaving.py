"""When what is preserved must begin to leave the hosts, so that it is whole before the deadline.

Pure. The rate is the slowest one that was measured on these hosts; without one a slow rate is
assumed, because too early costs minutes of an arm and too late costs the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

ASSUMED_BYTES_PER_S = 20e6
"""Of a host whose uploads were not measured: far below what S3 takes from any EC2 host."""
MARGIN = 2.0
"""Twice the measured time: a second attempt of every transfer fits."""
FIXED_S = 300.0
"""Sealing, committing and ending hosts, whatever the sizes."""


def slowest(rates: Sequence[tuple[int, float]]) -> float:
    """Bytes a second of the slowest transfer, from (bytes, seconds) of each.

    Transfers of less than 1 MiB say more about latency than about the rate and are left out.
    """
    counted = [size / seconds for size, seconds in rates if size >= 1 << 20 and seconds > 0]
    return min(counted, default=ASSUMED_BYTES_PER_S)


def seconds_to_leave(upload_bytes: int, readback_bytes: int, bytes_per_s: float) -> float:
    """Seconds that uploading and then reading everything back may take, margin included.

    Raises ValueError for a rate that is not above zero or a negative size.
    """
    if bytes_per_s <= 0 or upload_bytes < 0 or readback_bytes < 0:
        raise ValueError("a rate is above zero and sizes are not negative")
    return FIXED_S + MARGIN * (upload_bytes + readback_bytes) / bytes_per_s


def point_of_no_return(
    deadline: datetime, upload_bytes: int, readback_bytes: int, bytes_per_s: float
) -> datetime:
    """The last moment to stop an arm: from here on only preserving still fits."""
    return deadline - timedelta(seconds=seconds_to_leave(upload_bytes, readback_bytes, bytes_per_s))
