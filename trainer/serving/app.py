"""The ASGI app: POST /generate, GET /health, GET /ready (docs/contract.md, 'Serving')."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from trainer.contract import canonical
from trainer.serving.asked import Asked, Kept, Limits, Refusal, identity_of, read_body
from trainer.serving.engine import Engine, Full, Work
from trainer.serving.record import Record

BODY_SECONDS = 30.0
"""A body that is not whole after this long is refused."""


@dataclass
class Desk:
    """What all requests share. `engine` is there once the weights are verified."""

    limits: Limits
    record: Record
    kept: Kept | None
    """The declared cache."""
    state: str = "loading"
    """'loading', 'ready', 'draining' or 'failed'."""
    engine: Engine | None = None
    model_root: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    """By how requests ended: 'answered', 'cached', 'cancelled', 'failed', 'status 429', ..."""


def make_app(desk: Desk) -> Starlette:
    """The three routes over one desk."""

    async def generate(request: Request) -> Response:
        name: str | None = None
        try:
            name = identity_of(request.headers.get("x-request-id"))
            answer = await _answer(desk, request, name)
        except Refusal as refusal:
            desk.counts[f"status {refusal.status}"] += 1
            headers = {"Retry-After": "1"} if refusal.status in (429, 503) else {}
            body = {"error": refusal.sentence, "request": name}
            return _json(body, status=refusal.status, name=name, headers=headers)
        return _json(answer, name=name)

    async def health(request: Request) -> Response:
        engine = desk.engine
        body = {
            "state": desk.state,
            "model_root": desk.model_root or None,
            "running": engine.running if engine else 0,
            "waiting": engine.waiting if engine else 0,
            "requests": dict(desk.counts),
        }
        return _json(body, status=503 if desk.state == "failed" else 200)

    async def ready(request: Request) -> Response:
        return _json({"state": desk.state}, status=200 if desk.state == "ready" else 503)

    return Starlette(
        routes=[
            Route("/generate", generate, methods=["POST"]),
            Route("/health", health, methods=["GET"]),
            Route("/ready", ready, methods=["GET"]),
        ]
    )


def _json(
    value: Mapping[str, Any],
    *,
    status: int = 200,
    name: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    echoed = {"X-Request-Id": name} if name else {}
    return Response(
        canonical(value) + b"\n",
        status,
        headers={**(headers or {}), **echoed},
        media_type="application/json",
    )


async def _answer(desk: Desk, request: Request, name: str) -> Mapping[str, Any]:
    """The answer's JSON value. Raises Refusal."""
    data = await _body(request, desk.limits.body_bytes)
    if desk.state != "ready" or desk.engine is None:
        raise Refusal(503, f"this replica is {desk.state}")
    asked = read_body(data, name, desk.limits)
    if desk.kept is not None and (found := desk.kept.find(asked)) is not None:
        desk.counts["cached"] += 1
        desk.record.write("cached", name)
        return {**found, "cached": True}
    work = await _run(desk, desk.engine, request, asked)
    desk.counts["answered" if work.stopped in ("end", "limit") else work.stopped] += 1
    if work.stopped == "failed":
        raise Refusal(500, "the model failed while it answered")
    if work.stopped == "cancelled":
        raise Refusal(499, "the client went away")
    answer = {
        "request": name,
        "tokens": work.tokens,
        "stopped": work.stopped,
        "ties": work.ties,
        "cached": False,
        "model_root": desk.model_root,
    }
    if desk.kept is not None:
        desk.kept.keep(asked, answer)
    return answer


async def _body(request: Request, most: int) -> bytes:
    """The body, read no further than the limit. Raises Refusal."""
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                data += piece
                if len(data) > most:
                    raise Refusal(413, f"the body is longer than {most} bytes")
    except TimeoutError:
        raise Refusal(408, f"the body was not whole after {BODY_SECONDS:g} s") from None
    except ClientDisconnect:
        raise Refusal(499, "the client went away") from None
    return bytes(data)


async def _run(desk: Desk, engine: Engine, request: Request, asked: Asked) -> Work:
    """Let the engine answer; a client that goes away frees its row. Raises Refusal."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[None] = loop.create_future()

    def began(work: Work) -> None:
        desk.record.write("began", work.request)

    def ended(work: Work) -> None:
        desk.record.write("ended", work.request, stopped=work.stopped, tokens=len(work.tokens))
        loop.call_soon_threadsafe(_finish, answered)

    work = Work(asked.request, asked.tokens, asked.max_new_tokens, began, ended)
    try:
        engine.submit(work)
    except Full:
        raise Refusal(429, "the queue is full") from None
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((answered, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            engine.cancel(work)
            await answered
    except asyncio.CancelledError:  # the drain's time is up
        engine.cancel(work)
        raise
    finally:
        gone.cancel()
    return work


async def _gone(request: Request) -> None:
    """Returns when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _finish(answered: asyncio.Future[None]) -> None:
    if not answered.done():
        answered.set_result(None)
