"""A replica's front with a declared fault: `python -m harness.onhost.front ...`.

It stands between client and replica and passes everything on but what the fault is about, so that a
replica knows nothing of faults and any trainer's replica can have them. Warm-ups (identities that
begin with 'warm-') and everything but POST pass untouched.

late-answer: the answer comes after the client's time-out. silent: the request is read and nothing
is ever said. wrong-identity: the answer names another request. truncated: the answer ends before
its said length. killed: once the replica runs a request, all its processes get SIGKILL and from
then on nobody listens.

Writes FOLDER/front.json {"address", "port"} when it listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from harness.onhost import processes
from harness.onhost.asking import Place, call
from harness.onhost.command import parser, read_optional, run_program
from trainer import contract

FAULTS = ("late-answer", "silent", "wrong-identity", "truncated", "killed")
RUNNING_S = 10.0
"""How long a request may take to show as running before the replica is killed anyway."""
HEAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class _Request:
    """One request as it was read."""

    raw: bytes
    method: str
    identity: str

    @property
    def measured(self) -> bool:
        return self.method == "POST" and not self.identity.startswith("warm-")


class Front:
    """One listening socket in front of one replica."""

    def __init__(self, fault: str, behind: Place, timeout_s: float, job: Path) -> None:
        self._fault, self._behind, self._timeout_s, self._job = fault, behind, timeout_s, job
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, out: Path, address: str) -> None:
        """Listen until ended."""
        self._server = await asyncio.start_server(self._take, address, 0, limit=HEAD_BYTES)
        port = self._server.sockets[0].getsockname()[1]
        contract.write_json(out / "front.json", {"address": address, "port": port})
        with contextlib.suppress(asyncio.CancelledError):
            await self._server.serve_forever()
        await asyncio.Event().wait()  # what is out may end; the supervisor ends this process

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            if request.measured:
                await self._broken(request, writer)
            else:
                await self._pass(request, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # either side went away: so does the other
        finally:
            writer.transport.abort()

    async def _pass(self, request: _Request, writer: asyncio.StreamWriter) -> None:
        writer.write(await self._ask(request))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def _ask(self, request: _Request) -> bytes:
        """The replica's whole answer, as bytes. Raises OSError."""
        reader, writer = await asyncio.open_connection(self._behind.address, self._behind.port)
        try:
            writer.write(request.raw)
            await writer.drain()
            return await reader.read(-1)
        finally:
            writer.transport.abort()

    async def _broken(self, request: _Request, writer: asyncio.StreamWriter) -> None:
        if self._fault == "silent":
            await asyncio.sleep(self._timeout_s + 60.0)
        elif self._fault == "killed":
            await self._kill(request)
        else:
            began = time.monotonic()
            answer = await self._ask(request)
            if self._fault == "late-answer":
                late = self._timeout_s + 0.5 - (time.monotonic() - began)
                await asyncio.sleep(max(0.0, late))
            elif self._fault == "wrong-identity":
                answer = answer.replace(request.identity.encode(), b"x" * len(request.identity))
            else:
                answer = answer[: max(1, len(answer) - len(answer.split(b"\r\n\r\n", 1)[1]) // 2)]
            writer.write(answer)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    async def _kill(self, request: _Request) -> None:
        """Pass the request on, kill the replica while it runs, and listen no more."""
        asked = asyncio.ensure_future(self._ask(request))
        until = time.monotonic() + RUNNING_S
        while not asked.done() and not await self._runs() and time.monotonic() < until:
            await asyncio.sleep(0.005)
        assert self._server is not None
        self._server.close()
        kill_job(self._job)
        asked.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await asked

    async def _runs(self) -> bool:
        head = {"Host": self._behind.address, "Connection": "close"}
        with contextlib.suppress(Exception):
            status, _, body = await call(self._behind, "GET", "/health", head)
            return status == 200 and contract.parse(body)["running"] > 0
        return False


async def _read(reader: asyncio.StreamReader) -> _Request:
    """A whole request. Raises ValueError when it is none."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return _Request(head + body, lines[0].split(" ")[0], headers.get("x-request-id", ""))


def kill_job(folder: Path) -> None:
    """SIGKILL to a job's first process and all below it; its supervisor writes down what it saw."""
    started = read_optional(folder / "started.json") or {}
    first = processes.look(started.get("pid", 0))
    if first is None or first.start != started["start_ticks"]:
        return
    for process in (first, *processes.descendants(first.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("--fault", choices=FAULTS, required=True)
    commands.add_argument("--serving", type=Path, required=True, help="the replica's serving.json")
    commands.add_argument("--job", type=Path, required=True, help="the replica's job folder")
    commands.add_argument("--address", required=True)
    commands.add_argument("--timeout-s", type=float, required=True, help="the client's")
    commands.add_argument("--out", type=Path, required=True)
    given = commands.parse_args()
    place = contract.read_json(given.serving)
    behind = Place("behind", place["address"], place["port"])
    given.out.mkdir(parents=True, exist_ok=True)
    front = Front(given.fault, behind, given.timeout_s, given.job)
    asyncio.run(front.run(given.out, given.address))
    return 0


if __name__ == "__main__":
    run_program(main)
