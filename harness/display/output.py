"""Printing: rich values on the terminal, canonical JSON for machines."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import RenderableType

from harness.display.console import make_console
from harness.errors import BadInput
from trainer import contract


def show(value: RenderableType) -> None:
    """Print a rich value on standard output."""
    with _written():
        make_console(sys.stdout).print(value)


def print_json(value: Any) -> None:
    """Print one canonical JSON value and a newline, in ASCII whatever the encoding is."""
    text = contract.canonical(value).decode("utf-8")
    with _written():
        sys.stdout.write(re.sub(r"[^\x00-\x7e]", _escaped, text) + "\n")
        sys.stdout.flush()


@contextmanager
def _written() -> Iterator[None]:
    """Raises BadInput when standard output cannot take it, BrokenPipeError when nobody reads."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise BadInput(f"cannot be written ({error.strerror})", where="standard output") from None


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
