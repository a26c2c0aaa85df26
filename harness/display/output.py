"""Printing: rich values on the terminal, canonical JSON for machines."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from rich.console import RenderableType

from harness.display.console import make_console
from trainer import contract


def show(value: RenderableType) -> None:
    """Print a rich value on standard output."""
    make_console(sys.stdout).print(value)


def print_json(value: Any) -> None:
    """Print one canonical JSON value and a newline, in ASCII whatever the encoding is."""
    text = contract.canonical(value).decode("utf-8")
    sys.stdout.write(re.sub(r"[^\x00-\x7e]", _escaped, text) + "\n")


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
