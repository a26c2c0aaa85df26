"""What AWS says when it does not do something: three kinds, and one sentence for a person."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from harness.errors import BadInput, HarnessError, Refused, Waiting

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


@contextmanager
def asking(what: str, next_command: str = "harness check plan.json --account") -> Iterator[None]:
    """Turn what boto3 raises into one sentence. `what` is being asked, such as 'the account'."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        yield
    except NoCredentialsError:
        raise BadInput(
            f"there are no AWS credentials to ask for {what}",
            where="AWS",
            next_command="aws configure, or set AWS_PROFILE",
        ) from None
    except ClientError as error:
        raise _said(error.response.get("Error", {}), what, next_command) from None
    except BotoCoreError as error:
        raise Waiting(f"AWS could not be asked for {what} ({error})", where="AWS") from None


def _said(error: object, what: str, next_command: str) -> HarnessError:
    fields = error if isinstance(error, dict) else {}
    code, words = str(fields.get("Code", "")), str(fields.get("Message", ""))
    text = f"AWS refuses to say or do this: {what} ({code}: {words[:200]})"
    if code in ("Throttling", "RequestLimitExceeded", "InternalError", "ServiceUnavailable"):
        return Waiting(text, where="AWS", next_command="type the same command again")
    return Refused(text, where="AWS", next_command=next_command)
