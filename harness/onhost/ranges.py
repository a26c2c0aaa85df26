"""Large reads: pieces fetched side by side and handed on in order, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future

PART_BYTES = 8 * 1024 * 1024
"""One ranged request. S3 serves 8 to 16 MB ranges at full rate (Amazon S3 performance guide)."""


def in_order(
    fetch: Callable[[int, int], bytes],
    size: int,
    *,
    pool: Executor,
    in_flight: int,
    part_bytes: int = PART_BYTES,
) -> Iterator[bytes]:
    """The `size` bytes that `fetch(start, length)` gives, in order.

    At most `in_flight` pieces are asked for or waiting, and one more is with the consumer. What
    `fetch` raises is raised here, at its place; the pieces behind it are not asked for any more.
    """
    waiting: deque[Future[bytes]] = deque()
    starts = iter(range(0, size, part_bytes))

    def ask() -> None:
        start = next(starts, None)
        if start is not None:
            waiting.append(pool.submit(fetch, start, min(part_bytes, size - start)))

    try:
        for _ in range(in_flight):
            ask()
        while waiting:
            piece = waiting.popleft().result()
            ask()
            yield piece
    finally:
        for future in waiting:
            future.cancel()
