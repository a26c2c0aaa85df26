"""The serving client: `python -m harness.onhost.client --order FILE --out FOLDER`.

It sends an order's requests to its replicas and adds what happens to FOLDER/events.jsonl, a line an
event, each before or right after it happens. Started again on the same folder it goes on with the
requests that have no end there: none that was answered is sent again.

The order: `{"requests": [{"request", "case", "tokens"}], "warmups": [the same], "replicas":
[{"name", "address", "port", "down"}], "concurrency" (closed loop) or "arrivals_s" (open loop: when
each request is sent), "attempts", "timeout_s", "max_new_tokens"}`.

Events (`at` is seconds since `began` of this session, monotonic):
`began` {session, utc}; `warm-up` {request, replica, outcome, seconds}; `measure`;
`send` {request, attempt, replica}; `end` {request, attempt, outcome, seconds, status, said, answer:
null or {latency_s, tokens, stopped, ties, cached}}: in one line, so that no answer can be lost;
`failed` {request, latency_s}: no attempt is left; `interrupted` {request, attempt}: sent by an
earlier session that was ended; `finished`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.onhost.asking import Ended, Place, ask, is_ready
from harness.onhost.command import Fault, parser, run_program, utc_now
from trainer import contract

READY_S = 60.0
"""Replicas say that they are ready before the client starts; their word is asked for again."""


@dataclass
class Past:
    """What earlier sessions left in events.jsonl."""

    sessions: int = 0
    ended: set[str] = field(default_factory=set)
    """Requests that were answered or have failed."""
    attempts: dict[str, int] = field(default_factory=dict)
    """Attempts that were sent, by request."""
    counted: dict[str, int] = field(default_factory=dict)
    """Attempts that the replicas, not the client, ended: these count against the limit."""
    out: dict[str, int] = field(default_factory=dict)
    """Attempts that were sent and have no end: the client was ended meanwhile."""


def read_past(path: Path) -> Past:
    """Read the events; a torn last line is cut off."""
    past = Past()
    if not path.exists():
        return past
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)
    for line in data[:whole].splitlines():
        event = contract.parse(line, where=str(path))
        kind, request = event["event"], event.get("request", "")
        if kind == "began":
            past.sessions += 1
        elif kind == "send":
            past.attempts[request] = past.out[request] = event["attempt"]
        elif kind == "end":
            past.out.pop(request, None)
            past.counted[request] = past.counted.get(request, 0) + 1
            if event["answer"] is not None:
                past.ended.add(request)
        elif kind == "interrupted":
            past.out.pop(request, None)
        elif kind == "failed":
            past.ended.add(request)
    return past


class Client:
    """One session."""

    def __init__(self, order: dict[str, Any], out: Path) -> None:
        self._order = order
        self._places = [
            Place(each["name"], each["address"], each["port"]) for each in order["replicas"]
        ]
        self._live = [i for i, each in enumerate(order["replicas"]) if not each["down"]]
        self._past = read_past(out / "events.jsonl")
        self._began = time.monotonic()
        self._file = os.open(out / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    async def run(self) -> None:
        """Warm up and measure. Raises Fault when a replica is not ready."""
        self._write("began", session=self._past.sessions + 1, utc=utc_now())
        for request, attempt in sorted(self._past.out.items()):
            self._write("interrupted", request=request, attempt=attempt)
        await self._ready()
        await self._warm_up()
        self._write("measure")
        left = [
            (place, row)
            for place, row in enumerate(self._order["requests"])
            if row["request"] not in self._past.ended
        ]
        if "arrivals_s" in self._order:
            await self._open(left)
        else:
            await self._closed(iter(left))
        self._write("finished")
        os.fsync(self._file)

    async def _ready(self) -> None:
        until = time.monotonic() + READY_S
        for place in (self._places[i] for i in self._live):
            while not await is_ready(place):
                if time.monotonic() > until:
                    raise Fault(f"{place.name} is not ready at {place.address} port {place.port}.")
                await asyncio.sleep(0.1)

    async def _warm_up(self) -> None:
        """One after another over the replicas that are up; what fails is written down."""
        for number, row in enumerate(self._order["warmups"] if self._live else ()):
            place = self._places[self._live[number % len(self._live)]]
            name = f"{row['request']}-{self._past.sessions}"
            ended = await self._ask(place, {**row, "request": name})
            self._write(
                "warm-up", request=name, replica=place.name, outcome=ended.outcome,
                seconds=round(ended.seconds, 6),
            )  # fmt: skip

    async def _closed(self, rows: Iterator[tuple[int, dict[str, Any]]]) -> None:
        """As many at once as declared; whoever is done takes the next in order."""

        async def work() -> None:
            for place, row in rows:
                await self._request(place, row)

        async with asyncio.TaskGroup() as group:
            for _ in range(self._order["concurrency"]):
                group.create_task(work())

    async def _open(self, rows: list[tuple[int, dict[str, Any]]]) -> None:
        """Each at its time, whatever became of the others; late ones are not left out."""
        arrivals, begun = self._order["arrivals_s"], time.monotonic()
        skipped = arrivals[rows[0][0]] if rows and self._past.sessions else 0.0
        async with asyncio.TaskGroup() as group:
            for place, row in rows:
                due = begun + arrivals[place] - skipped
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                group.create_task(self._request(place, row, due))

    async def _request(self, place: int, row: dict[str, Any], due: float | None = None) -> None:
        """All attempts of a request, over the replicas in turn, its identity kept."""
        name = row["request"]
        began = time.monotonic() if due is None else due
        sent = self._past.attempts.get(name, 0)
        counted = self._past.counted.get(name, 0)
        while counted < self._order["attempts"]:
            replica = self._places[(place + sent) % len(self._places)]
            sent, counted = sent + 1, counted + 1
            self._write("send", request=name, attempt=sent, replica=replica.name)
            ended = await self._ask(replica, row)
            answer = None
            if ended.answer is not None:
                answer = {
                    "latency_s": round(time.monotonic() - began, 6),
                    "tokens": ended.answer["tokens"],
                    "stopped": ended.answer["stopped"],
                    "ties": ended.answer.get("ties", []),
                    "cached": ended.answer.get("cached", False),
                }
            self._write(
                "end", request=name, attempt=sent, outcome=ended.outcome, status=ended.status,
                seconds=round(ended.seconds, 6), said=ended.said, answer=answer,
            )  # fmt: skip
            if answer is not None:
                return
        self._write("failed", request=name, latency_s=round(time.monotonic() - began, 6))

    async def _ask(self, place: Place, row: dict[str, Any]) -> Ended:
        return await ask(
            place,
            row["request"],
            row["tokens"],
            self._order["max_new_tokens"],
            self._order["timeout_s"],
        )

    def _write(self, event: str, **fields: Any) -> None:
        """One write, so that a client that is killed leaves whole lines."""
        at = round(time.monotonic() - self._began, 6)
        os.write(self._file, contract.canonical({"event": event, "at": at, **fields}) + b"\n")


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("--order", type=Path, required=True)
    commands.add_argument("--out", type=Path, required=True)
    given = commands.parse_args()
    order = contract.read_json(given.order)
    given.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(Client(order, given.out).run())
    return 0


if __name__ == "__main__":
    run_program(main)
