"""What a person sees while a run goes on: a small interface and its implementations."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from harness.display import words
from harness.display.console import make_console
from harness.display.left import Left, left_line
from harness.display.sanitize import clean, fit

LEFT_EVERY_S = 600.0
"""Plain output prints what is left at most this often."""
PLAIN_EVERY_S = 10.0
"""Plain output prints an item at most this often."""


class Progress(Protocol):
    """Told by the pipeline what happens. Nothing here decides anything."""

    def stage(self, name: str, detail: str = "") -> None:
        """A stage starts."""

    def done(self, name: str, seconds: float) -> None:
        """A stage ended well."""

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
        """Long work moved on: `key` names it ('train single'), `text` is what it says now
        ('update 7/16  loss 1.234'), `rate` and `unit` its speed (101.0, 'tok/s').

        Time left is worked out from `done` and `of`. At done == of the item is finished.
        """

    def note(self, text: str) -> None:
        """A sentence that stands on its own line."""

    def limits(self, left: Callable[[], Left]) -> None:
        """From now on say what is left until deadline and ceiling; `left` is asked anew."""

    def close(self) -> None:
        """End live output. Safe to call twice."""


def make_progress(
    stream: TextIO,
    *,
    as_json: bool = False,
    monotonic: Callable[[], float] = time.monotonic,
) -> Progress:
    """JSON lines if asked for, live lines on a terminal, plain lines otherwise."""
    if as_json:
        return JsonProgress(stream)
    console = make_console(stream)
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveProgress(console, monotonic)
    return PlainProgress(console, monotonic)


@dataclass(frozen=True, slots=True)
class _Start:
    """Where an item stood when it was first seen."""

    at: float
    done: int


class Estimates:
    """Time left of items, from their own pace since they were first seen."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._starts: dict[str, _Start] = {}

    def left(self, key: str, done: int | None, of: int | None) -> float | None:
        """Seconds left, or None while that cannot be known."""
        if done is None or of is None:
            return None
        now = self._monotonic()
        start = self._starts.get(key)
        if start is None or done < start.done:
            self._starts[key] = _Start(now, done)
            return None
        if done >= of:
            del self._starts[key]
            return None
        moved, took = done - start.done, now - start.at
        return took / moved * (of - done) if moved > 0 and took > 0 else None


def item_line(key: str, text: str, rate: float | None, unit: str, left: float | None) -> str:
    """train single  update 7/16  loss 1.234  101 tok/s  about 2 min left"""
    parts = [key, text]
    if rate is not None:
        parts.append(f"{words.rate(rate)} {unit}".strip())
    if left is not None:
        parts.append(f"{words.about(left)} left")
    return "  ".join(part for part in parts if part)


class PlainProgress:
    """Lines without colour or movement; an item at most every ten seconds, its end always."""

    def __init__(self, console: Console, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._monotonic = monotonic
        self._estimates = Estimates(monotonic)
        self._printed: dict[str, float] = {}
        self._left: Callable[[], Left] | None = None
        self._said_left: float | None = None

    def stage(self, name: str, detail: str = "") -> None:
        """Print the stage's name."""
        self._print(f"{name}: {detail}" if detail else name)
        self._say_left()

    def done(self, name: str, seconds: float) -> None:
        """Print how long it took."""
        self._print(f"{name}: done in {words.seconds(seconds)}")

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
        """Print the item if its last line is ten seconds old, or if it is finished."""
        left = self._estimates.left(key, done, of)
        finished = done is not None and done == of
        now, last = self._monotonic(), self._printed.get(key)
        if not finished and last is not None and now - last < PLAIN_EVERY_S:
            return
        self._printed[key] = now
        if finished:
            del self._printed[key]
        self._print(f"  {item_line(key, text, rate, unit, left)}")
        self._say_left()

    def note(self, text: str) -> None:
        """Print the sentence."""
        self._print(text)

    def limits(self, left: Callable[[], Left]) -> None:
        """Print it now, then every ten minutes beside what else is printed."""
        self._left = left
        self._say_left()

    def _say_left(self) -> None:
        now = self._monotonic()
        if self._left is None or (
            self._said_left is not None and now - self._said_left < LEFT_EVERY_S
        ):
            return
        self._said_left = now
        self._print(left_line(self._left()))

    def close(self) -> None:
        """Nothing is held open."""

    def _print(self, text: str) -> None:
        indent = " " * (len(text) - len(text.lstrip()))
        self._console.print(indent + clean(text).strip(), soft_wrap=True)
        self._console.file.flush()


class LiveProgress:
    """On a terminal: what is done stands still, what runs is redrawn below it."""

    def __init__(self, console: Console, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._monotonic = monotonic
        self._estimates = Estimates(monotonic)
        self._items: dict[str, str] = {}
        self._left: Callable[[], Left] | None = None
        self._stage: tuple[str, str, float] | None = None
        self._live: Live | None = None

    def stage(self, name: str, detail: str = "") -> None:
        """Show the stage as running, with its time."""
        self._stage = (name, detail, self._monotonic())
        self._refresh()

    def done(self, name: str, seconds: float) -> None:
        """Let the finished stage stand, with what it took."""
        self._stage = None
        self._items.clear()
        self._say(f"{name}  done in {words.seconds(seconds)}", "green")
        self._refresh()

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
        """Redraw the item; a finished one stands."""
        left = self._estimates.left(key, done, of)
        line = f"  {item_line(key, text, rate, unit, left)}"
        if done is not None and done == of:
            self._items.pop(key, None)
            self._say(line, "dim")
        else:
            self._items[key] = line
        self._refresh()

    def note(self, text: str) -> None:
        """Print the sentence above what runs."""
        self._say(text, "")

    def limits(self, left: Callable[[], Left]) -> None:
        """Keep it as the last moving line."""
        self._left = left
        self._refresh()

    def close(self) -> None:
        """Take the moving lines away."""
        self._left = None
        if self._live is not None:
            self._items.clear()
            self._stage = None
            self._live.stop()
            self._live = None

    def _say(self, text: str, style: str) -> None:
        indent = " " * (len(text) - len(text.lstrip()))
        self._console.print(Text(indent + clean(text).strip(), style=style))

    def _refresh(self) -> None:
        if self._live is None:
            self._live = Live(
                _Lines(self._lines), console=self._console, transient=True, refresh_per_second=4,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._live.start()

    def _lines(self) -> list[str]:
        lines = []
        if self._stage is not None:
            name, detail, since = self._stage
            running = f"{self._monotonic() - since:.0f} s"
            lines.append("  ".join(part for part in (name, detail, running) if part))
        lines += self._items.values()
        return [*lines, left_line(self._left())] if self._left and lines else lines


class _Lines:
    """Lines that are cut to the terminal's width, asked for anew at every redraw."""

    def __init__(self, lines: Callable[[], list[str]]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """One unwrapped text a line."""
        for line in self._lines():
            indent = " " * (len(line) - len(line.lstrip()))
            text = indent + clean(line).strip()
            yield Text(fit(text, options.max_width), no_wrap=True)


class JsonProgress:
    """One JSON object a line, ASCII, for programs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._left: Callable[[], Left] | None = None

    def stage(self, name: str, detail: str = "") -> None:
        """{"event": "stage", ...}, then {"event": "left", ...} once that is known"""
        self._write("stage", name=name, detail=detail)
        self._write_left()

    def done(self, name: str, seconds: float) -> None:
        """{"event": "done", ...}"""
        self._write("done", name=name, seconds=seconds)

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
        """{"event": "item", ...}"""
        self._write("item", key=key, text=text, done=done, of=of, rate=rate, unit=unit)

    def note(self, text: str) -> None:
        """{"event": "note", ...}"""
        self._write("note", text=text)

    def limits(self, left: Callable[[], Left]) -> None:
        """{"event": "left", ...} now and with every stage"""
        self._left = left
        self._write_left()

    def _write_left(self) -> None:
        if self._left is not None:
            now = self._left()
            self._write("left", seconds=now.seconds, usd=now.usd, ceiling_usd=now.ceiling_usd)

    def close(self) -> None:
        """Nothing is held open."""

    def _write(
        self, event: Literal["stage", "done", "item", "note", "left"], **fields: str | float | None
    ) -> None:
        self._stream.write(json.dumps({"event": event, **fields}, ensure_ascii=True) + "\n")
        self._stream.flush()
