"""Strict reading of a JSON object, field by field."""

from __future__ import annotations

import math
import re
from typing import Any

from trainer.errors import RecipeError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Fields:
    """Reads one JSON object field by field, and refuses what nobody asked for."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise RecipeError(f"{where} is not an object")
        self._left = dict(value)
        self._where = where

    def _take(self, name: str) -> Any:
        if name not in self._left:
            raise RecipeError(f"{self._where} lacks the field '{name}'")
        return self._left.pop(name)

    def _wrong(self, name: str, wanted: str, value: Any) -> RecipeError:
        shown = repr(value)[:60]
        return RecipeError(f"{self._where}: '{name}' is {shown}, not {wanted}")

    def text(self, name: str) -> str:
        """A text that is not empty."""
        value = self._take(name)
        if not isinstance(value, str) or not value:
            raise self._wrong(name, "a text", value)
        return value

    def name(self, name: str) -> str:
        """A text that can be part of a file name."""
        value = self.text(name)
        if not _NAME.fullmatch(value):
            raise self._wrong(name, "a name of letters, digits, '.', '_' and '-'", value)
        return value

    def choice(self, name: str, *options: str) -> str:
        """One of the given texts."""
        value = self._take(name)
        if value not in options or not isinstance(value, str):
            raise self._wrong(name, "one of " + ", ".join(options), value)
        return value

    def choice_or_null(self, name: str, *options: str) -> str | None:
        """One of the given texts, or None."""
        return None if self._null(name) else self.choice(name, *options)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def integer(self, name: str, least: int) -> int:
        """An integer of at least `least`."""
        value = self._take(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(name, f"an integer of at least {least}", value)
        return value

    def integer_or_null(self, name: str, least: int) -> int | None:
        """An integer of at least `least`, or None."""
        return None if self._null(name) else self.integer(name, least)

    def number(
        self, name: str, least: float, most: float = math.inf, *, open_ends: bool = False
    ) -> float:
        """A number between two bounds, which `open_ends` excludes."""
        value = self._take(name)
        wanted = f"a number from {least:g} to {most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, wanted, value)
        inside = least < value < most if open_ends else least <= value <= most
        if not inside:
            raise self._wrong(name, wanted + (" (ends excluded)" if open_ends else ""), value)
        return float(value)

    def positive_or_null(self, name: str) -> float | None:
        """A number above zero, or None."""
        return None if self._null(name) else self.number(name, 0, open_ends=True)

    def names(self, name: str) -> tuple[str, ...]:
        """A list of different names."""
        value = self._take(name)
        good = isinstance(value, list) and all(
            isinstance(item, str) and _NAME.fullmatch(item) for item in value
        )
        if not good or len(set(value)) != len(value):
            raise self._wrong(name, "a list of different names", value)
        return tuple(value)

    def token_ids(self, name: str) -> tuple[int, ...]:
        """A list of token ids, not empty."""
        value = self._take(name)
        good = isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)
        if not good or not value:
            raise self._wrong(name, "a list of token ids", value)
        return tuple(value)

    def inner(self, name: str) -> Fields:
        """An object inside this one."""
        return Fields(self._take(name), f"{self._where}, '{name}'")

    def has(self, name: str) -> bool:
        """Whether a field that may be left out is there."""
        return name in self._left

    def done(self) -> None:
        """Refuses what was not read."""
        if self._left:
            unknown = ", ".join(f"'{name}'" for name in sorted(self._left))
            raise RecipeError(f"{self._where} has unknown fields: {unknown}")

    def _null(self, name: str) -> bool:
        if self._left.get(name, 0) is None:
            del self._left[name]
            return True
        return False
