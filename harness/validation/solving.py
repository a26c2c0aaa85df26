"""Right answers worked out anew from nothing but the prompt's text."""

from __future__ import annotations

import re
from typing import Any

ROW = re.compile(r"^([A-Z][0-9]{3}) (\S+) ([0-9]+) ([0-9]+) (ready|pending|closed) ([1-9])$")
HEADING = "id city units price status priority"


def solve(family: str, prompt: str) -> Any:
    """The answer that the prompt's table gives, or None where the question cannot be read."""
    rows, rest = [], []
    for line in prompt.split("\n"):
        match = ROW.match(line)
        if match:
            rows.append(match.groups())
        elif line != HEADING:
            rest.append(line)
    question = " ".join(rest)
    if family == "lookup":
        return _one_row(rows, re.findall(r"\b[A-Z][0-9]{3}\b", question))
    if family == "filter":
        return _of_status(rows, re.findall(r"\b(?:ready|pending|closed)\b", question))
    if family == "total":
        return {"total": sum(int(row[2]) * int(row[3]) for row in rows)}
    if family == "sort":
        best = sorted(sorted(row[0] for row in rows), key=_urgency(rows), reverse=True)
        return {"ids": best[:2]}
    return None


def _one_row(rows: list[Any], named: list[str]) -> Any:
    if len(named) != 1:
        return None
    for row in rows:
        if row[0] == named[0]:
            return {"city": row[1], "units": int(row[2])}
    return {"city": None, "units": None}


def _of_status(rows: list[Any], named: list[str]) -> Any:
    if len(named) != 1:
        return None
    return {"ids": [row[0] for row in rows if row[4] == named[0]]}


def _urgency(rows: list[Any]) -> Any:
    levels = {row[0]: int(row[5]) for row in rows}
    return levels.__getitem__
