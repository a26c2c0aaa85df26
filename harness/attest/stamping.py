"""RFC 3161 time stamps: asked over HTTP, checked offline."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from rfc3161_client import (
    HashAlgorithm,
    TimestampRequestBuilder,
    TimeStampResponse,
    VerificationError,
    VerifierBuilder,
    decode_timestamp_response,
)

from harness.errors import BadInput, Waiting
from harness.strict import read_plain

ANSWER_S = 30.0
TRIES = 3
BETWEEN_S = 3.0
MAX_REPLY_BYTES = 256 * 1024


@dataclass(frozen=True)
class Authority:
    """Whom to ask, and the certificates (PEM) that its replies must lead to."""

    url: str
    certificates: bytes


@dataclass(frozen=True)
class TimeStamp:
    """What the authority answered (DER), and the time in it."""

    reply: bytes
    at: datetime


def load_authority(url: str, certificates: Path | None) -> Authority:
    """Raises BadInput for an address or a file that cannot be used."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput("is not an http or https address", where="--timestamp")
    if parts.username or parts.password or parts.query:
        raise BadInput(
            "stands in the evidence, so it may hold no password and no query", where="--timestamp"
        )
    if certificates is None:
        raise BadInput(
            "needs --timestamp-ca: the authority's root certificate (PEM), from its own site",
            where="--timestamp",
        )
    return Authority(url, load_certificates(certificates))


def load_certificates(path: Path) -> bytes:
    """The bytes of a PEM file that holds certificates. Raises BadInput."""
    try:
        data = read_plain(path, limit=MAX_REPLY_BYTES)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", where=str(path)) from None
    _parsed(data, where=str(path))
    return data


def ask(authority: Authority, data: bytes, *, sleep: Callable[[float], None]) -> TimeStamp:
    """A checked time stamp of `data`. Raises Waiting when none was to be had."""
    request = (
        TimestampRequestBuilder()
        .data(data)
        .hash_algorithm(HashAlgorithm.SHA256)
        .nonce(nonce=True)
        .cert_request(cert_request=True)
        .build()
    )
    for attempt in range(TRIES):
        if attempt:
            sleep(BETWEEN_S)
        try:
            reply = _post(authority.url, request.as_bytes())
            at = check_stamp(reply, data, authority.certificates, where=authority.url,
                             nonce=request.nonce)  # fmt: skip
        except BadInput as error:
            said = f"its answer {error.what}"
            continue
        except (OSError, http.client.HTTPException, ValueError) as error:
            said = _why(error)
            continue
        return TimeStamp(reply, at)
    raise Waiting(
        f"the time-stamp authority gave no stamp in {TRIES} tries: {said}", where=authority.url
    )


def check_stamp(
    reply: bytes, data: bytes, certificates: bytes, *, where: str, nonce: int | None = None
) -> datetime:
    """When `data` existed, by the reply's signed time (UTC). Raises BadInput.

    The signer's certificate must allow time stamping and lead to one of `certificates`; all are
    judged at the time in the stamp, so a certificate that has expired since does not matter.
    """
    response = _decoded(reply, where)
    builder = VerifierBuilder(nonce=nonce, roots=_parsed(certificates, where=where))
    try:
        builder.build().verify_message(response, data)
    except (VerificationError, ValueError) as error:
        raise BadInput(f"is no time stamp of this commitment ({error})", where=where) from None
    return response.tst_info.gen_time.astimezone(UTC)


def signer_name(reply: bytes, *, where: str) -> str:
    """Who signed a checked reply: the subject of its certificate."""
    signed = _decoded(reply, where).signed_data
    wanted = {(info.issuer, info.serial_number) for info in signed.signer_infos}
    for der in signed.certificates:
        certificate = x509.load_der_x509_certificate(der)
        if (certificate.issuer, certificate.serial_number) in wanted:
            return certificate.subject.rfc4514_string()
    return "an authority that sent no certificate"


def _decoded(reply: bytes, where: str) -> TimeStampResponse:
    try:
        return decode_timestamp_response(reply)
    except ValueError:
        raise BadInput("is not the answer of a time-stamp authority", where=where) from None


def _parsed(data: bytes, *, where: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        raise BadInput("holds no certificate in PEM form", where=where) from None


def _post(url: str, body: bytes) -> bytes:
    asked = urllib.request.Request(
        url,
        data=body,
        headers={
            "Content-Type": "application/timestamp-query",
            "Accept": "application/timestamp-reply",
        },
    )
    with urllib.request.urlopen(asked, timeout=ANSWER_S) as answer:
        found: bytes = answer.read(MAX_REPLY_BYTES)
    return found


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"it answered {error.code} {error.reason}"
    return f"it cannot be reached ({getattr(error, 'reason', error)})"
