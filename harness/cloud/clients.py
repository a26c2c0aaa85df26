"""One region of AWS, and what boto3 raises as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.clock import Clock
from harness.errors import BadInput, HarnessError, Refused, Waiting, command

if TYPE_CHECKING:
    from boto3.session import Session
    from types_boto3_ec2 import EC2Client
    from types_boto3_iam import IAMClient
    from types_boto3_scheduler import EventBridgeSchedulerClient

ATTEMPTS = 5
"""Of one request, the first included (boto3's 'standard' mode backs off between them)."""
PATIENT = ("Throttling", "RequestLimitExceeded", "InternalError", "ServiceUnavailable")


class Aws:
    """One region with the operator's credentials; clients are made when they are needed.

    boto3 itself honours AWS_ENDPOINT_URL, AWS_PROFILE and the like.
    """

    def __init__(
        self, region: str, *, session: Session | None = None, clock: Clock | None = None
    ) -> None:
        self.region = region
        self.clock = clock or Clock()
        self._session = session

    @cached_property
    def session(self) -> Session:
        """The session; boto3 is imported here and not before."""
        if self._session is not None:
            return self._session
        import boto3

        return boto3.session.Session(region_name=self.region)

    @cached_property
    def ec2(self) -> EC2Client:
        """EC2 of the region."""
        return self.session.client("ec2", self.region, config=_config())

    @cached_property
    def iam(self) -> IAMClient:
        """IAM, which has no regions."""
        return self.session.client("iam", self.region, config=_config())

    @cached_property
    def scheduler(self) -> EventBridgeSchedulerClient:
        """EventBridge Scheduler of the region."""
        return self.session.client("scheduler", self.region, config=_config())

    def elsewhere(self, region: str) -> Aws:
        """Another region with the same credentials."""
        return (
            self if region == self.region else Aws(region, session=self._session, clock=self.clock)
        )


def _config() -> Any:
    from botocore.config import Config

    return Config(
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        connect_timeout=10,
        read_timeout=60,
    )


def code_of(error: BaseException) -> str:
    """AWS's error code of a ClientError, else ''."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def words_of(error: BaseException) -> str:
    """AWS's message of a ClientError, on one line."""
    response = getattr(error, "response", None) or {}
    return " ".join(str(response.get("Error", {}).get("Message", error)).split())[:300].rstrip(".")


def absent(error: BaseException) -> bool:
    """Whether AWS says that the thing does not exist ('InvalidVolume.NotFound', 'NoSuchEntity')."""
    code = code_of(error)
    return code.endswith((".NotFound", "NotFoundException", ".Unknown")) or code in (
        "NoSuchEntity",
        "InvalidGroup.NotFound",
        "InvalidAllocationID.NotFound",
    )


@contextmanager
def asking(what: str, *, where: str = "AWS") -> Iterator[None]:
    """Turn what boto3 raises into one sentence; `what` AWS was asked, as 'to list the volumes'."""
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        CredentialRetrievalError,
        NoCredentialsError,
        ProfileNotFound,
    )

    try:
        yield
    except (NoCredentialsError, CredentialRetrievalError, ProfileNotFound) as error:
        raise BadInput(
            f"there are no usable AWS credentials ({error})",
            where=where,
            next_command="aws configure, or set AWS_PROFILE",
        ) from None
    except ClientError as error:
        raise _refusal(error, what, where) from None
    except BotoCoreError as error:
        raise Waiting(
            f"AWS could not be asked {what} ({error})",
            where=where,
            next_command="type the same command again when the connection works",
        ) from None


def _refusal(error: BaseException, what: str, where: str) -> HarnessError:
    code, words = code_of(error), words_of(error)
    if code in ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "AuthFailure",
                "InvalidClientTokenId", "UnrecognizedClientException"):  # fmt: skip
        return BadInput(
            f"AWS does not accept these credentials ({code}: {words})",
            where=where,
            next_command="log in again (aws sso login, or new keys), then the same command",
        )
    text = f"AWS refused {what} ({code}: {words})"
    if code.startswith(PATIENT):
        return Waiting(text, where=where, next_command="type the same command again")
    return Refused(text, where=where, next_command=command("check", "plan.json", "--account"))
