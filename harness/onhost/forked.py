"""A program of `harness.onhost` in a forked child: what a new interpreter would do, sooner."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from harness.onhost.command import Fault

SHOWN_BYTES = 4 << 20
ALIVE_S = 4.0


def run(
    module: str, arguments: list[str], limit_s: float, waiting: Callable[[], None]
) -> dict[str, Any]:
    """{exit_code, stdout, stderr} of `python -m harness.onhost.MODULE ARGUMENTS`.

    `waiting` is called every few seconds. Raises Fault (4) when it outlasts `limit_s`: it is ended.
    """
    if not module.isidentifier():
        raise Fault(f"'{module}' names no program.")
    folder = os.environ.get("TMPDIR")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _become(module, arguments, out, err)
        code = _wait(child, limit_s, waiting)
        if code is None:
            raise Fault(f"'{module}' was ended after {limit_s:g} s without an answer.", exit_code=4)
        return {"exit_code": code, "stdout": _end(out), "stderr": _end(err)}


def _wait(child: int, limit_s: float, waiting: Callable[[], None]) -> int | None:
    """Exit status of the child, as a shell says it; None when it had to be ended."""
    until, told = time.monotonic() + limit_s, time.monotonic()
    pause = 0.001
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        now = time.monotonic()
        if now > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        if now - told > ALIVE_S:
            waiting()
            told = now
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)


def _become(module: str, arguments: list[str], out: BinaryIO, err: BinaryIO) -> None:
    """The child: never returns."""
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, null), (1, out.fileno()), (2, err.fileno())):
            os.dup2(source, target)
        sys.stdout = os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w")
        name = f"harness.onhost.{module}"
        sys.argv = [module, *arguments]
        try:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            if isinstance(ended.code, str):
                print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _end(handle: BinaryIO) -> str:
    size = handle.seek(0, os.SEEK_END)
    handle.seek(max(0, size - SHOWN_BYTES))
    return handle.read().decode("utf-8", "replace")
