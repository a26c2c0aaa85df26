"""Progress that nobody may be reading: a lost terminal or a full disk never stops a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.display.left import Left
from harness.display.progress import Progress


class Unfailing:
    """Hands everything to another `Progress` until that cannot write any more."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner
        self._lost = False

    def stage(self, name: str, detail: str = "") -> None:
        """As the inner one."""
        with self._told() as inner:
            inner.stage(name, detail)

    def done(self, name: str, seconds: float) -> None:
        """As the inner one."""
        with self._told() as inner:
            inner.done(name, seconds)

    def item(
        self,
        key: str,
        text: str,
        *,
        done: int | None = None,
        of: int | None = None,
        rate: float | None = None,
        unit: str = "",
    ) -> None:
        """As the inner one."""
        with self._told() as inner:
            inner.item(key, text, done=done, of=of, rate=rate, unit=unit)

    def note(self, text: str) -> None:
        """As the inner one."""
        with self._told() as inner:
            inner.note(text)

    def limits(self, left: Callable[[], Left]) -> None:
        """As the inner one."""
        with self._told() as inner:
            inner.limits(left)

    def close(self) -> None:
        """As the inner one."""
        with self._told() as inner:
            inner.close()

    @contextmanager
    def _told(self) -> Iterator[Progress]:
        try:
            yield _NOTHING if self._lost else self._inner
        except (OSError, ValueError):  # ValueError: the stream is closed
            self._lost = True


class _Nothing:
    def stage(self, name: str, detail: str = "") -> None: ...

    def done(self, name: str, seconds: float) -> None: ...

    def item(
        self,
        key: str,
        text: str,
        *,
        done: int | None = None,
        of: int | None = None,
        rate: float | None = None,
        unit: str = "",
    ) -> None: ...

    def note(self, text: str) -> None: ...

    def limits(self, left: Callable[[], Left]) -> None: ...

    def close(self) -> None: ...


_NOTHING = _Nothing()
