"""Strict scoring of one answer. Whatever a model wrote, the outcome is a Score, never an error.

An answer is one JSON object (RFC 8259) in UTF-8 and nothing else but white space around it. It is
correct if it equals the expected value with the order of keys left free and nothing else:

- types are not free: 1, 1.0, true and "1" are four different answers;
- lists are ordered; null is an answer like any other, right only where it is expected;
- a number with a fraction or an exponent is a double (1e0 is 1.0, -0.0 equals 0.0, digits beyond
  a double's are rounded), any other is an exact integer.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

Reason = Literal[
    "correct",
    "wrong-value",
    "not-json",
    "not-object",
    "duplicate-key",
    "non-finite",
    "number-too-long",
    "invalid-unicode",
    "too-long",
    "too-deep",
]
"""In one word: 'correct' and 'wrong-value' are valid JSON objects, all others are not.

not-json: prose, code fences, a byte-order mark, trailing text, or any other syntax error, also the
empty answer. not-object: valid JSON of another type. non-finite: NaN, Infinity, or a number that
overflows a double, such as 1e400. invalid-unicode: bytes that are not UTF-8, or a lone surrogate,
escaped or not. The size and depth limits are checked before the syntax.
"""

MAX_ANSWER_BYTES = 32768
MAX_DEPTH = 64
"""Objects and lists inside each other, the outermost one included."""
MAX_NUMBER_CHARACTERS = 1000
"""Longer than any number that a task asks for, far below what makes a conversion slow."""


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome for one answer. The parsed value is not kept."""

    correct: bool
    """Equal to what was expected; implies valid_json."""
    valid_json: bool
    """One JSON object, strictly parsed."""
    reason: Reason


def score(answer: str | bytes, expected: JsonValue, max_bytes: int = MAX_ANSWER_BYTES) -> Score:
    """Score what a model wrote against the expected JSON object.

    `max_bytes` is the longest answer that may earn credit, in bytes of UTF-8.
    Errors: never for any answer. ValueError if `expected` is something that no answer can equal
    (not an object, or not strict JSON within the same limits of depth and digits): a fault of the
    prepared case, which would otherwise count against every model.
    """
    if not isinstance(expected, dict):
        raise ValueError("the expected value is not a JSON object, so no answer could be correct")
    _check_expected(expected, 1)
    try:
        parsed = _parse_object(answer, max_bytes)
    except _Refused as refused:
        return Score(correct=False, valid_json=False, reason=refused.reason)
    if _equal(parsed, expected):
        return Score(correct=True, valid_json=True, reason="correct")
    return Score(correct=False, valid_json=True, reason="wrong-value")


class _Refused(Exception):
    """The answer is not a strict JSON object. Not a ValueError: the parser must not swallow it."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


def _parse_object(answer: str | bytes, max_bytes: int) -> dict[str, Any]:
    text = _decode(answer, max_bytes)
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except json.JSONDecodeError:
        raise _Refused("not-json") from None
    _check_strings(value)
    if not isinstance(value, dict):
        raise _Refused("not-object")
    return value


def _decode(answer: str | bytes, max_bytes: int) -> str:
    # A character is at least one byte, so an endless string is refused before it is encoded.
    if len(answer) > max_bytes:
        raise _Refused("too-long")
    try:
        if isinstance(answer, bytes):
            return answer.decode("utf-8")
        encoded = answer.encode("utf-8")
    except UnicodeError:
        raise _Refused("invalid-unicode") from None
    if len(encoded) > max_bytes:
        raise _Refused("too-long")
    return answer


def _check_depth(text: str) -> None:
    """Refuse deep nesting before the parser recurses into it.

    Up to the first syntax error this reads strings as the parser does; past it the parser never
    comes, so what is counted there cannot matter to its depth.
    """
    depth = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _Refused("too-deep")
        elif character in "]}":
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("duplicate-key")
    return found


def _refuse_constant(name: str) -> Any:
    raise _Refused("non-finite")


def _finite(literal: str) -> float:
    value = float(_ascii_number(literal))
    if not math.isfinite(value):
        raise _Refused("non-finite")
    return value


def _integer(literal: str) -> int:
    return int(_ascii_number(literal))


def _ascii_number(literal: str) -> str:
    if len(literal) > MAX_NUMBER_CHARACTERS:
        raise _Refused("number-too-long")
    # Without its C scanner, Python's parser takes the digits of every script for digits.
    if not literal.isascii():
        raise _Refused("not-json")
    return literal


def _check_strings(value: Any) -> None:
    """Refuse lone surrogates, which JSON can escape and UTF-8 cannot hold."""
    if isinstance(value, str):
        if not _is_unicode(value):
            raise _Refused("invalid-unicode")
    elif isinstance(value, list):
        for item in value:
            _check_strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_strings(key)
            _check_strings(item)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _equal(left: Any, right: Any) -> bool:
    """Equality of JSON values in which bool, int and float are different types."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_equal(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)


def _check_expected(value: object, depth: int) -> None:
    if isinstance(value, dict | list) and depth > MAX_DEPTH:
        raise ValueError(f"the expected value is nested deeper than {MAX_DEPTH}")
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise ValueError("the expected value has a key that is not a string")
            _check_expected(key, depth)
            _check_expected(item, depth + 1)
    elif type(value) is list:
        for item in value:
            _check_expected(item, depth + 1)
    elif type(value) is str:
        if not _is_unicode(value):
            raise ValueError("the expected value holds a lone surrogate")
    elif type(value) is float:
        if not math.isfinite(value):
            raise ValueError("the expected value holds a number that is not finite")
    elif type(value) is int:
        if abs(value) >= 10 ** (MAX_NUMBER_CHARACTERS - 1):
            raise ValueError("the expected value holds an integer that is too long")
    elif value is not None and type(value) is not bool:
        raise ValueError(f"the expected value holds a {type(value).__name__}, which is not JSON")
