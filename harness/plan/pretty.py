"""JSON laid out for people: plans and schemas are read and edited by hand."""

from __future__ import annotations

import json
from typing import Any

WIDTH = 100


def pretty(value: Any, indent: int = 0, room: int = WIDTH) -> str:
    """JSON for people: a value on one line where it fits, else a line an entry."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or (indent and len(flat) <= room):
        return flat
    pad, inner = " " * indent, " " * (indent + 2)
    if isinstance(value, list):
        rows = [pretty(each, indent + 2, WIDTH - indent - 3) for each in value]
        opening, closing = "[", "]"
    else:
        rows = [
            f"{json.dumps(key)}: {pretty(each, indent + 2, WIDTH - indent - len(key) - 7)}"
            for key, each in value.items()
        ]
        opening, closing = "{", "}"
    return f"{opening}\n{inner}" + f",\n{inner}".join(rows) + f"\n{pad}{closing}"
