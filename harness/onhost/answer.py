"""Answers questions over one open channel, so that following a job costs no new process.

`answer [--silence S]` reads requests from standard input, one JSON object a line (after `write`:
that many raw bytes), and answers each with one JSON line (after `read`: raw bytes). While a
program runs it writes an empty line every few seconds: it lives. It ends when its input ends or
when nobody asked for S seconds. Every path is absolute. The first line it writes is
{"boot_id", "pid"}.

state {folder} | deadline {folder} | jobs {folder} | look {path} | read {path, offset, limit} |
write {path, bytes, mode} | run {module, arguments, limit_s} | ping {}
"""

from __future__ import annotations

import os
import secrets
import select
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from harness.onhost import deadline, forked, job, processes, trees
from harness.onhost.command import Fault, parser, run_program
from trainer import contract

SILENCE_S = 60.0
MOST_BYTES = 8 << 20
SMALL_BYTES = 32 << 20


def answer(
    request: dict[str, Any], payload: bytes, waiting: Callable[[], None]
) -> tuple[dict[str, Any], bytes]:
    """The answer to one request, and the bytes after it. Raises Fault, OSError.

    `waiting` is called now and then while a program runs.
    """
    asked = request.get("ask")
    if asked == "state":
        return job.state(Path(request["folder"])), b""
    if asked == "deadline":
        return deadline.state(Path(request["folder"])), b""
    if asked == "jobs":
        folder = Path(request["folder"])
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        return {"jobs": names}, b""
    if asked == "read":
        data = _read(Path(request["path"]), request["offset"], request["limit"])
        return {"bytes": len(data)}, data
    if asked == "write":
        _write(Path(request["path"]), payload, int(request["mode"], 8))
        return {"bytes": len(payload)}, b""
    if asked == "look":
        return _look(Path(request["path"])), b""
    if asked == "run":
        return forked.run(
            request["module"], request["arguments"], float(request["limit_s"]), waiting
        ), b""
    if asked == "ping":
        return {}, b""
    raise Fault(f"'{asked}' cannot be asked.")


def _alive(sink: BinaryIO) -> None:
    sink.write(b"\n")
    sink.flush()


def _look(path: Path) -> dict[str, Any]:
    """{kind, size} and, of a file that one can read at once, its hash."""
    if path.is_dir():
        return {"kind": "folder", "size": trees.size_of(path)}
    if not path.is_file():
        return {"kind": "absent"}
    size = path.stat().st_size
    if size > SMALL_BYTES:
        return {"kind": "file", "size": size}
    sha256, size = contract.hash_file(path)
    return {"kind": "file", "size": size, "sha256": sha256}


def _read(path: Path, offset: int, limit: int) -> bytes:
    try:
        with open(path, "rb") as handle:
            handle.seek(offset)
            return handle.read(min(limit, MOST_BYTES))
    except FileNotFoundError:
        return b""


def _write(path: Path, data: bytes, mode: int) -> None:
    """A file that appears whole or not at all, with this mode from its first moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, path)
        contract.sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def serve(source: BinaryIO, sink: BinaryIO, *, silence_s: float) -> None:
    """Answer until the input ends or falls silent."""
    _say(sink, {"boot_id": processes.boot_id(), "pid": os.getpid()}, b"")
    while (line := _line(source, silence_s)) and line.endswith(b"\n"):
        request = contract.parse(line, where="the request")
        payload = _exactly(source, int(request.get("bytes", 0)), silence_s)
        try:
            told, data = answer(request, payload, lambda: _alive(sink))
        except (Fault, OSError, KeyError, contract.ContractError) as error:
            told, data = {"fault": _words(error)}, b""
        _say(sink, told, data)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the machine'}: {error.strerror}"
    return str(error) if isinstance(error, Fault) else f"{type(error).__name__}: {error}"


def _say(sink: BinaryIO, told: dict[str, Any], data: bytes) -> None:
    sink.write(contract.canonical(told) + b"\n" + data)
    sink.flush()


def _line(source: BinaryIO, silence_s: float) -> bytes:
    """One line; empty at the end of input or after silence. `source` is unbuffered."""
    line = b""
    while not line.endswith(b"\n") and len(line) < 65536:
        piece = _some(source, 1, silence_s)
        if not piece:
            return b""
        line += piece
    return line


def _exactly(source: BinaryIO, count: int, silence_s: float) -> bytes:
    if not 0 <= count <= MOST_BYTES:
        raise Fault(f"{count} bytes are more than one request may carry.")
    data = bytearray()
    while len(data) < count:
        piece = _some(source, count - len(data), silence_s)
        if not piece:
            raise Fault("the input ended within a request.")
        data += piece
    return bytes(data)


def _some(source: BinaryIO, most: int, silence_s: float) -> bytes:
    ready, _, _ = select.select([source], [], [], silence_s)
    return os.read(source.fileno(), most) if ready else b""


def main() -> int:
    """The command line."""
    commands = parser(__doc__)
    commands.add_argument("--silence", type=float, default=SILENCE_S)
    given = commands.parse_args()
    with (
        open(0, "rb", buffering=0, closefd=False) as source,
        open(1, "wb", closefd=False) as sink,
    ):
        serve(source, sink, silence_s=given.silence)
    return 0


if __name__ == "__main__":
    run_program(main)
