"""The small value kinds that plan fields are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema

from harness.strict import shown


def _form(pattern: str, meaning: str, *, longest: int = 64) -> Callable[[str], str]:
    """A check that text has a form, whose error says in words what the form is."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if len(text) > longest or not compiled.fullmatch(text):
            raise ValueError(f"{shown(text)} is not {meaning}")
        return text

    return check


_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
_SHA256 = r"[0-9a-f]{64}"
_REVISION = r"[0-9a-f]{40}"
_MONEY = r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,18})?"

Name = Annotated[
    str,
    AfterValidator(
        _form(_NAME, "a name (lower-case words joined by hyphens, 40 characters)", longest=40)
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{_NAME}$", "maxLength": 40}),
]
"""Lower-case words joined by hyphens."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=4000)]
Sha256 = Annotated[
    str,
    AfterValidator(_form(_SHA256, "a SHA-256 (64 lower-case hex digits)")),
    WithJsonSchema({"type": "string", "pattern": f"^{_SHA256}$"}),
]
Revision = Annotated[
    str,
    AfterValidator(
        _form(_REVISION, "a full commit hash (40 lower-case hex digits); a branch or tag can move")
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{_REVISION}$"}),
]
"""A full commit hash: a branch or tag can move."""
Count = Annotated[int, Field(ge=1, le=2**53 - 1)]
CountOrZero = Annotated[int, Field(ge=0, le=2**53 - 1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Money = Annotated[
    str,
    AfterValidator(
        _form(_MONEY, "an amount of money (a plain decimal in a string, such as '12.50')")
    ),
    WithJsonSchema({"type": "string", "pattern": f"^{_MONEY}$"}),
]
"""US dollars as a decimal string (invariant 10)."""


class Misfit(ValueError):
    """A rule over several fields is broken. `at` is the JSON pointer from the model that has the
    rule to the field to change; loading a plan adds it to the place of the error."""

    def __init__(self, at: str, what: str) -> None:
        super().__init__(what)
        self.at = at
