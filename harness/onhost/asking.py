"""One attempt of one request over HTTP/1.1, and every way in which it can end.

A connection an attempt: what a replica refuses is then seen as it is, and a late answer has nowhere
to go.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from trainer import contract

HEAD_BYTES = 64 * 1024
BODY_BYTES = 16 << 20
"""A longer answer is malformed."""
LEAST_TOKEN, MOST_TOKEN = 0, 1 << 31


@dataclass(frozen=True)
class Place:
    """Where a replica listens."""

    name: str
    address: str
    port: int


@dataclass(frozen=True)
class Ended:
    """How an attempt ended. `answer` is there when `outcome` is 'answered'."""

    outcome: str
    """'answered', 'refused' (no connection), 'reset' (closed before a whole head), 'timed-out',
    'truncated' (shorter than said), 'wrong-identity', 'overloaded' (429 or 503), 'status' (any
    other), 'malformed'."""
    seconds: float
    status: int = 0
    answer: dict[str, Any] | None = None
    said: str = ""


class _Broken(Exception):
    """Ends an attempt."""

    def __init__(self, outcome: str, said: str = "", status: int = 0) -> None:
        super().__init__(said)
        self.outcome, self.said, self.status = outcome, said, status


async def ask(
    place: Place, request: str, tokens: list[int], max_new_tokens: int, timeout_s: float
) -> Ended:
    """Send a request and wait for its whole answer, `timeout_s` in all. Never raises."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(timeout_s):
            answer = await _exchange(place, request, tokens, max_new_tokens)
    except _Broken as broken:
        seconds = time.monotonic() - began
        return Ended(broken.outcome, seconds, broken.status, None, broken.said[:200])
    except TimeoutError:
        return Ended("timed-out", time.monotonic() - began)
    return Ended("answered", time.monotonic() - began, 200, answer)


async def _exchange(
    place: Place, request: str, tokens: list[int], max_new_tokens: int
) -> dict[str, Any]:
    body = contract.canonical({"tokens": tokens, "max_new_tokens": max_new_tokens})
    head = {
        "Host": place.address,
        "X-Request-Id": request,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
    }
    status, headers, data = await call(place, "POST", "/generate", head, body)
    if status in (429, 503):
        raise _Broken("overloaded", _said(data), status)
    if status != 200:
        raise _Broken("status", _said(data), status)
    if headers.get("x-request-id") != request:
        raise _Broken("wrong-identity", f"{headers.get('x-request-id')}", status)
    return _answer(data, request)


async def call(
    place: Place, method: str, path: str, head: dict[str, str], body: bytes = b""
) -> tuple[int, dict[str, str], bytes]:
    """(status, headers with lower-case names, body) of one request. Raises _Broken."""
    try:
        reader, writer = await asyncio.open_connection(place.address, place.port, limit=HEAD_BYTES)
    except OSError as error:
        raise _Broken("refused", error.strerror or str(error)) from None
    try:
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        status, headers = _head(await reader.readuntil(b"\r\n\r\n"))
        return status, headers, await _body(reader, headers)
    except (ConnectionError, asyncio.IncompleteReadError, OSError) as error:
        raise _Broken("reset", type(error).__name__) from None
    except asyncio.LimitOverrunError:
        raise _Broken("malformed", "the answer's head is too long") from None
    finally:
        writer.transport.abort()


def _head(data: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = data.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise _Broken("malformed", "the answer is not HTTP/1.1")
    pairs = (line.partition(":") for line in lines if line)
    return int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    said = headers.get("content-length", "")
    if not said.isdigit() or int(said) > BODY_BYTES:
        raise _Broken("malformed", f"Content-Length is '{said[:40]}'")
    try:
        return await reader.readexactly(int(said))
    except asyncio.IncompleteReadError as error:
        raise _Broken("truncated", f"{len(error.partial)} of {said} bytes") from None
    except ConnectionError:
        raise _Broken("truncated", f"fewer than {said} bytes") from None


def _answer(data: bytes, request: str) -> dict[str, Any]:
    try:
        answer = contract.parse(data, where="the answer")
    except contract.ContractError as error:
        raise _Broken("malformed", str(error), 200) from None
    if not isinstance(answer, dict) or answer.get("stopped") not in ("end", "limit"):
        raise _Broken("malformed", "the answer is no object with 'stopped'", 200)
    if answer.get("request") != request:
        raise _Broken("wrong-identity", f"{answer.get('request')}", 200)
    if not _ids(answer.get("tokens")) or not _ids(answer.get("ties", [])):
        raise _Broken("malformed", "the answer's tokens are no token ids", 200)
    if not isinstance(answer.get("cached", False), bool):
        raise _Broken("malformed", "the answer's 'cached' is neither true nor false", 200)
    return answer


def _ids(value: Any) -> bool:
    return isinstance(value, list) and all(
        type(each) is int and LEAST_TOKEN <= each < MOST_TOKEN for each in value
    )


def _said(data: bytes) -> str:
    return data[:200].decode("utf-8", "replace").strip()


async def is_ready(place: Place, timeout_s: float = 5.0) -> bool:
    """Whether the replica says that it is ready."""
    head = {"Host": place.address, "Connection": "close"}
    try:
        async with asyncio.timeout(timeout_s):
            return (await call(place, "GET", "/ready", head))[0] == 200
    except (_Broken, TimeoutError):
        return False
