"""A strict JSON reader by recursive descent, written apart from the one that scores.

`read(text)` gives ("object", {...}), ("array", [...]), ("string", s), ("integer", n),
("real", x), ("word", True | False | None), or raises `Malformed`. Numbers with a fraction or an
exponent are real. Duplicate keys, lone surrogates, non-finite and overlong numbers and deep
nesting are malformed.
"""

from __future__ import annotations

import re
from math import isinf
from typing import Any

Value = tuple[str, Any]

DEEPEST = 64
LONGEST_NUMBER = 1000
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
PLAIN_TEXT = re.compile(r'[^"\\\x00-\x1f]*')
HEX = re.compile(r"[0-9a-fA-F]{4}")
SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
WORDS = {"true": True, "false": False, "null": None}


class Malformed(Exception):
    """The text is not one strict JSON value."""


def read(text: str) -> Value:
    """The single value that the text consists of, white space around it aside."""
    reader = _Reader(text)
    value = reader.value(0)
    reader.blanks()
    if reader.at != len(text):
        raise Malformed
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1

    def peek(self) -> str:
        """The next character after white space ('' at the end)."""
        self.blanks()
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> None:
        if self.peek() != mark:
            raise Malformed
        self.at += 1

    def value(self, depth: int) -> Value:
        mark = self.peek()
        if mark == "{":
            return "object", self.members(depth + 1)
        if mark == "[":
            return "array", self.elements(depth + 1)
        if mark == '"':
            return "string", self.string()
        for word, meaning in WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return "word", meaning
        return self.number()

    def members(self, depth: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        self.enter("{", depth)
        if self.peek() != "}":
            while True:
                self.blanks()
                key = self.string()
                self.take(":")
                if key in found:
                    raise Malformed
                found[key] = self.value(depth)
                if self.peek() != ",":
                    break
                self.take(",")
        self.take("}")
        return found

    def elements(self, depth: int) -> list[Value]:
        found: list[Value] = []
        self.enter("[", depth)
        if self.peek() != "]":
            found.append(self.value(depth))
            while self.peek() == ",":
                self.take(",")
                found.append(self.value(depth))
        self.take("]")
        return found

    def enter(self, mark: str, depth: int) -> None:
        if depth > DEEPEST:
            raise Malformed
        self.take(mark)

    def number(self) -> Value:
        match = NUMBER.match(self.text, self.at)
        if match is None or len(match[0]) > LONGEST_NUMBER:
            raise Malformed
        self.at = match.end()
        if match[1] is None and match[2] is None:
            return "integer", int(match[0])
        real = float(match[0])
        if isinf(real):
            raise Malformed
        return "real", real

    def string(self) -> str:
        self.take('"')
        parts: list[str] = []
        while True:
            match = PLAIN_TEXT.match(self.text, self.at)
            assert match is not None
            parts.append(match[0])
            self.at = match.end()
            closing = self.text[self.at : self.at + 1]
            if closing == '"':
                self.at += 1
                break
            if closing != "\\":
                raise Malformed
            parts.append(self.escape())
        whole = "".join(parts)
        if any(0xD800 <= ord(character) < 0xE000 for character in whole):
            raise Malformed
        return whole

    def escape(self) -> str:
        letter = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if letter in SHORT:
            return SHORT[letter]
        if letter != "u":
            raise Malformed
        high = self.four()
        if 0xD800 <= high < 0xDC00 and self.text.startswith("\\u", self.at):
            self.at += 2
            low = self.four()
            if not 0xDC00 <= low < 0xE000:
                raise Malformed
            return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        return chr(high)

    def four(self) -> int:
        match = HEX.match(self.text, self.at)
        if match is None:
            raise Malformed
        self.at += 4
        return int(match[0], 16)
