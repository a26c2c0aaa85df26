"""The small value kinds that plan fields are made of."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=40)]
"""Lower-case words joined by hyphens."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=4000)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Revision = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""A full commit hash: a branch or tag can move."""
Count = Annotated[int, Field(ge=1, le=2**53 - 1)]
CountOrZero = Annotated[int, Field(ge=0, le=2**53 - 1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]


def _money(text: str) -> str:
    if not Decimal(text).is_finite():
        raise ValueError("an amount of money is a plain decimal")
    return text


Money = Annotated[
    str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,8})(\.[0-9]{1,18})?$"), AfterValidator(_money)
]
"""US dollars as a decimal string (invariant 10)."""
