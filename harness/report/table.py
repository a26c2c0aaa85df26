"""A report's tables as data: every figure says where it came from (invariant 8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.display.words import NOT_RUN

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure: the value, how it is shown, and where it came from."""

    value: Value
    text: str
    source: str
    state: str = ""
    """'pass', 'fail' or '' (the page's colour; the words say it too)."""

    def to_json(self) -> dict[str, Any]:
        """Without `text` where it repeats the value."""
        row: dict[str, Any] = {"value": self.value, "source": self.source}
        return row if self.text == self.value else {**row, "text": self.text}


@dataclass(frozen=True, slots=True)
class Row:
    """A header and its figures. `note` says what the figure leaves out; `detail` is a line of its
    own under the row."""

    header: str
    cells: tuple[Cell, ...]
    source: str
    note: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One table. `columns` names the header column and then every cell."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""
    not_run: str = ""
    """Set instead of rows: why nothing was measured."""
    words: frozenset[str] = field(default=frozenset())
    """Columns that hold text, not numbers."""

    def to_json(self) -> dict[str, Any]:
        """The table as plain JSON; the string 'not run' stands for rows that do not exist."""
        return {
            "title": self.title,
            "note": self.note,
            "columns": list(self.columns),
            "rows": f"{NOT_RUN}: {self.not_run}" if self.not_run else [_row(r) for r in self.rows],
        }


def _row(row: Row) -> dict[str, Any]:
    return {
        "header": row.header,
        "note": row.note,
        "detail": row.detail,
        "source": row.source,
        "cells": [cell.to_json() for cell in row.cells],
    }


def cell(value: Value, text: str | None = None, *, source: str, state: str = "") -> Cell:
    """A figure; None is a stage that did not run."""
    if value is None:
        return Cell(NOT_RUN, NOT_RUN, source)
    return Cell(value, str(value) if text is None else text, source, state)


def row(
    header: str, cells: Iterable[Cell], *, note: str = "", source: str = "", detail: str = ""
) -> Row:
    """A row; its source is that of its cells unless one is given for all."""
    made = tuple(cells)
    from_all = source or ", ".join(dict.fromkeys(c.source for c in made))
    return Row(header, made, from_all, note, detail)


def absent(key: str, title: str, why: str, columns: Sequence[str] = ()) -> Table:
    """A table whose stage did not run."""
    return Table(key, title, tuple(columns), (), not_run=why)
