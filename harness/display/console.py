"""The terminal that everything is printed on: its width, and what its encoding can hold."""

from __future__ import annotations

import contextlib
import io
from typing import TextIO

from rich.console import Console

from harness.display.sanitize import clean

PIPE_COLUMNS = 80
"""Width when the output is no terminal."""


def make_console(stream: TextIO) -> Console:
    """A console on a stream. What its encoding cannot hold is escaped, never an error."""
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(ValueError, io.UnsupportedOperation):
            stream.reconfigure(errors="backslashreplace")
    width = None if stream.isatty() else PIPE_COLUMNS
    return Console(
        file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False
    )


def safe(console: Console, text: str, *, lines: bool = False) -> str:
    """Text made safe for this console: no control codes, and ASCII where it holds no more."""
    return clean(text, ascii_only=is_ascii(console), lines=lines)


def is_ascii(console: Console) -> bool:
    """Whether the console's encoding is not UTF-8."""
    return not console.encoding.lower().startswith("utf")
