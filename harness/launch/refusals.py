"""What AWS says when it does not do something: three kinds for the next placement."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["capacity", "configuration", "other"]

CAPACITY = (
    "InsufficientInstanceCapacity",
    "InsufficientHostCapacity",
    "InsufficientCapacity",
    "Unsupported",
)
"""The next zone or type may have room. Unsupported: this zone does not offer the type
(EC2 API Reference, 'Error codes for the Amazon EC2 API')."""
CONFIGURATION = (
    "UnauthorizedOperation",
    "AccessDenied",
    "AuthFailure",
    "VcpuLimitExceeded",
    "InstanceLimitExceeded",
    "InvalidParameter",
    "InvalidParameterValue",
    "InvalidParameterCombination",
    "InvalidAMIID",
    "InvalidSubnetID",
    "InvalidGroup",
    "OptInRequired",
    "PendingVerification",
    "ValidationException",
    "ValidationError",
    "MissingParameter",
)
"""Another zone would answer the same."""


def kind_of(said: str) -> Kind:
    """What an engine's or an API's words mean for the next placement.

    Anything that is not clearly a lack of capacity stops: trying on blindly costs money.
    """
    if any(_names(code, said) for code in CONFIGURATION):
        return "configuration"
    if any(_names(code, said) for code in CAPACITY):
        return "capacity"
    return "other"


def essence(said: str, *, limit: int = 300) -> str:
    """The words of an engine's output that say why, on one line."""
    lines = [" ".join(line.split()) for line in said.splitlines()]
    telling = [line for line in lines if kind_of(line) != "other" or "StateReason" in line]
    errors = [line for line in lines if line.lower().startswith("error")]
    chosen = telling or errors or [line for line in lines if line][-1:]
    return (chosen[0] if chosen else "the engine said nothing")[:limit].rstrip(".")


def _names(code: str, said: str) -> bool:
    return re.search(rf"(?<![A-Za-z]){code}(?![A-Za-z])", said) is not None
