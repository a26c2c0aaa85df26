"""Hostile text made harmless: what a model wrote never reaches a terminal or page as it is.

The classes of characters are written out here, not taken from the interpreter's Unicode tables,
so that the same text gives the same bytes under any Python.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size

_SEQUENCE = re.compile(
    r"""
    (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]             # CSI: colours, cursor, clearing
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])    # OSC, DCS, SOS, PM, APC ...
      [^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?      # ... up to their terminator
    | \x1b[ -/]*[0-~]                            # two-character escapes
    """,
    re.VERBOSE,
)

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CONTROLS = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]")

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffc\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
"""Controls, bidi controls, invisible and private characters, and lone surrogates; tab and newline
are not among them."""


def name_of(character: str) -> str:
    """How a character that cannot be seen is written: U+202E."""
    return f"U+{ord(character):04X}"


def clean(text: str, *, lines: bool = False) -> str:
    """Text that is safe to print.

    Terminal sequences, control codes and bidi controls are removed; other characters that cannot
    be seen become backslash escapes. Tabs and newlines become spaces; `lines` keeps newlines.
    """
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n"))
    text = _CONTROLS.sub("", text).replace("\t", " ")
    if not lines:
        text = text.replace("\n", " ")
    return UNSEEN.sub(lambda match: _escape(match[0]), text)


def fit(text: str, width: int) -> str:
    """Cut to a width in terminal cells, with dots where something was left out."""
    if cell_len(text) <= width:
        return text
    return f"{set_cell_size(text, max(0, width - 3)).rstrip()}..."[: max(0, width)]


def _escape(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode("ascii")
