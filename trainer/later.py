"""One result worked out on a thread, beside slower things."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Later(Generic[T]):
    """Calls a function on a thread of its own. Meant for work that releases the interpreter."""

    def __init__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._future: Future[T] = self._pool.submit(function, *args, **kwargs)

    def result(self) -> T:
        """Waits for it; raises what it raised."""
        return self._future.result()

    def __enter__(self) -> Later[T]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
