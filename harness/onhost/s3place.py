"""Where an S3 store is, its client, and what its errors mean. boto3 is imported when one is opened.

A store's address is JSON text without secrets: {"kind": "s3", "bucket", "prefix", "region",
"owner", "endpoint", "checksums"}. Credentials come from where boto3 finds them: the operator's
profile, or the role of the instance.
"""

from __future__ import annotations

import importlib
import json
import site
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.onhost.command import Fault
from harness.onhost.objects import ObjectFault

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

HELPER_ENVIRONMENT = "helper-environment"
"""Folder in a host's work folder that push builds from the requirements beside this file."""
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
CONNECTIONS = 32
EXPIRED = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired"}
)
ELSEWHERE = frozenset({"PermanentRedirect", "AuthorizationHeaderMalformed", "301", "307"})
ABSENT = frozenset({"NoSuchKey", "NoSuchVersion", "404"})
DENIED = frozenset({"AccessDenied", "403", "Forbidden", "AllAccessDisabled"})


class StoreFault(Fault):
    """The store cannot be used now (exit 4): nothing is lost, and the same command goes on."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, exit_code=4)


@dataclass(frozen=True)
class S3Place:
    """A prefix of a bucket."""

    bucket: str
    prefix: str
    """Without a slash at either end; may be empty."""
    region: str
    owner: str = ""
    """Account that must own the bucket; empty: not checked."""
    endpoint: str = ""
    """Of a store that is not AWS; empty: AWS."""
    checksums: bool = True
    """Whether the store understands `x-amz-checksum-sha256` (AWS does)."""

    @classmethod
    def parse(cls, given: dict[str, Any]) -> S3Place:
        """From an address. Raises Fault."""
        try:
            values = {name: given[name] for name in ("bucket", "prefix", "region")}
            values |= {name: given.get(name, "") for name in ("owner", "endpoint")}
        except KeyError as error:
            raise Fault(f"the store's address has no {error}.") from None
        if not all(isinstance(value, str) for value in values.values()):
            raise Fault("the store's address holds something that is no text.")
        return cls(**values, checksums=given.get("checksums", not values["endpoint"]) is True)

    def address(self) -> str:
        """JSON text that `parse` understands."""
        return json.dumps({"kind": "s3", **self.__dict__}, sort_keys=True)

    def key(self, sha256: str) -> str:
        """The key of an object. Raises Fault when it is not a hash."""
        if len(sha256) != 64 or not frozenset("0123456789abcdef").issuperset(sha256):
            raise Fault(f"'{sha256[:80]}' is not a SHA-256 in lower-case hex.")
        return f"{self.base}{sha256}"

    @property
    def base(self) -> str:
        """Prefix of all objects, with its last slash."""
        return f"{self.prefix}/objects/" if self.prefix else "objects/"

    def locate(self, sha256: str) -> str:
        """s3:// address for people."""
        return f"s3://{self.bucket}/{self.key(sha256)}"

    def owned(self) -> dict[str, Any]:
        """What every request says about bucket and owner."""
        more = {"ExpectedBucketOwner": self.owner} if self.owner else {}
        return {"Bucket": self.bucket, **more}


def make_client(place: S3Place) -> S3Client:
    """A client whose requests carry no checksum that the store may not understand.

    Shared by threads. Raises StoreFault when boto3 is not there or no region or profile fits.
    """
    boto3 = _load("boto3")
    config = _load("botocore.config").Config(
        retries={"mode": "standard", "total_max_attempts": 6},
        connect_timeout=10,
        read_timeout=60,
        max_pool_connections=CONNECTIONS,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if place.endpoint else "auto"},
    )
    errors = _load("botocore.exceptions")
    try:
        client: S3Client = boto3.session.Session().client(
            "s3", region_name=place.region, endpoint_url=place.endpoint or None, config=config
        )
    except errors.BotoCoreError as error:
        raise StoreFault(f"s3://{place.bucket}: {_one_line(error)}.") from None
    return client


def _load(name: str) -> Any:
    """A module of boto3: installed, or in the environment that push has built on this host."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        for parent in Path(__file__).resolve().parents:
            packages = parent / HELPER_ENVIRONMENT / "lib" / version / "site-packages"
            if packages.is_dir():
                site.addsitedir(str(packages))
                break
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise StoreFault(
            f"boto3 is not installed for {sys.executable}, and a store in S3 needs it."
        ) from None


def network_errors() -> tuple[type[Exception], ...]:
    """What a request raises that was cut off; asking again is right."""
    errors = _load("botocore.exceptions")
    return (
        errors.HTTPClientError,
        errors.IncompleteReadError,
        errors.ResponseStreamingError,
        ConnectionError,
        TimeoutError,
    )


def request_errors() -> tuple[type[Exception], ...]:
    """Everything that boto3 raises."""
    errors = _load("botocore.exceptions")
    return (errors.ClientError, errors.BotoCoreError, ConnectionError, TimeoutError)


def code_of(error: Exception) -> str:
    """S3's error code ('412', 'NoSuchKey', ...); '' when the request was never answered."""
    answer = getattr(error, "response", None)
    if not isinstance(answer, dict):
        return ""
    return str(answer.get("Error", {}).get("Code") or status_of(error))


def status_of(error: Exception) -> int:
    """HTTP status of the answer; 0 when there was none."""
    answer = getattr(error, "response", None)
    if not isinstance(answer, dict):
        return 0
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def meaning(error: Exception, place: S3Place, key: str, doing: str) -> Fault:
    """One sentence for what boto3 raised. ObjectFault (missing) or StoreFault."""
    code, status = code_of(error), status_of(error)
    where = f"s3://{place.bucket}/{key}".rstrip("/")
    if code in EXPIRED:
        return StoreFault(f"{where}: the credentials expired while {doing}; renew them.")
    if code == "RequestTimeTooSkewed":
        return StoreFault(
            f"{where}: this machine's clock is too far off for S3; set it.{_clocks(error)}"
        )
    if code == "NoSuchBucket":
        return StoreFault(f"s3://{place.bucket}: there is no such bucket.")
    if code in ABSENT:
        return ObjectFault("missing", f"{where} is not there.")
    if code in ELSEWHERE or status in (301, 307):
        return StoreFault(f"s3://{place.bucket} is not in {place.region}{_region(error)}.")
    if code in DENIED or status == 403:
        return StoreFault(f"{where}: {_denied(code, place, doing)}.")
    return StoreFault(f"{where}: {doing} failed: {_one_line(error)}.")


def _denied(code: str, place: S3Place, doing: str) -> str:
    owner = f", another account than {place.owner} owns the bucket" if place.owner else ""
    return (
        f"{doing} is denied ({code}): the role may not do it, the key is missing and the role "
        f"lacks s3:ListBucket on {place.prefix or 'the bucket'} (a missing key reads as 403 "
        f"then){owner}"
    )


def _region(error: Exception) -> str:
    answer: dict[str, Any] = getattr(error, "response", {})
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    found = headers.get("x-amz-bucket-region") or answer.get("Error", {}).get("Region")
    return f" but in {found}" if found else ""


def _clocks(error: Exception) -> str:
    told: dict[str, Any] = getattr(error, "response", {}).get("Error", {})
    if "ServerTime" not in told:
        return ""
    return f" S3 says {told['ServerTime']}, this machine {told.get('RequestTime', '?')}."


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:300]
