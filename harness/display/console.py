"""The terminal that everything is printed on: its width, and what its encoding can hold."""

from __future__ import annotations

import codecs
import contextlib
import io
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console

PIPE_COLUMNS = 80
"""Width when the output is no terminal."""

_LOOK_ALIKES = {
    "\u2010": "-", "\u2011": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-", "\u00d7": "x",
    "\u2026": ".", "\u00a0": " ", "\u202f": " ", "\u2018": "'", "\u2019": "'", "\u201c": '"',
    "\u201d": '"', "\u00b7": ".", "\u2022": "*",
}  # fmt: skip


def _same_width(error: UnicodeError) -> tuple[str, int]:
    """For an encoding that lacks a character: a look-alike or '?', as wide as what it replaces,
    so that no line grows past the terminal's edge."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    plain = "".join(_LOOK_ALIKES.get(char, "?" * cell_len(char)) for char in lost)
    return plain, error.end


SAME_WIDTH = "harness-same-width"
codecs.register_error(SAME_WIDTH, _same_width)


class _Console(Console):
    """A console whose reader may go away: the caller hears of it, the process goes on."""

    def on_broken_pipe(self) -> None:
        """Rich would exit here."""
        raise BrokenPipeError


def make_console(stream: TextIO) -> Console:
    """A console on a stream. What its encoding cannot hold is replaced, never an error."""
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(ValueError, io.UnsupportedOperation):
            stream.reconfigure(errors=SAME_WIDTH)
    width = None if stream.isatty() else PIPE_COLUMNS
    return _Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
