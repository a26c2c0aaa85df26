"""How a command ends when something goes wrong: signals, errors of the system, lost output."""

from __future__ import annotations

import errno
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from harness.errors import BadInput, HarnessError, Waiting
from trainer import contract

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PASSING = (errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ESTALE)
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal asked this process to stop. `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @property
    def exit_code(self) -> int:
        """128 and the signal's number, as shells say it."""
        return 128 + self.number

    @property
    def words(self) -> str:
        """Who stopped it."""
        if self.number == signal.SIGINT:
            return "Stopped by you."
        return f"Stopped by {signal.Signals(self.number).name}."


class OurFault(HarnessError):
    """A mistake in Harness itself."""

    exit_code = 1
    kind = "fault in harness"


@contextmanager
def stops_as_errors() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise `Stopped` once; later ones do not cut the clean-up short.

    A signal that the caller ignores (nohup, a shell's background job) stays ignored.
    """
    before = {number: signal.getsignal(number) for number in _STOPS}
    after = dict(before)

    def later(number: int, frame: FrameType | None) -> None:
        with suppress(OSError, ValueError):
            os.write(2, b"\nStopping already; what was begun is being ended first.\n")

    def first(number: int, frame: FrameType | None) -> None:
        for each in _STOPS:
            if before[each] is not signal.SIG_IGN:
                signal.signal(each, later)
                after[each] = signal.SIG_IGN  # this process has said its last word
        raise Stopped(number)

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, first)
    try:
        yield
    finally:
        for number, handler in after.items():
            signal.signal(number, handler)


def as_harness_error(error: Exception, place: str = "") -> HarnessError:
    """One sentence for an error that no room has said itself.

    `place` stands where the system does not name a file.
    """
    if isinstance(error, HarnessError):
        return error
    if isinstance(error, contract.ContractError):
        return BadInput(str(error), where=place)
    if isinstance(error, OSError):
        return _of_system(error, place)
    if isinstance(error, MemoryError):
        return Waiting("there is not enough memory", where=place)
    return _ours(error)


def _of_system(error: OSError, place: str) -> HarnessError:
    where, why = str(error.filename or place), error.strerror or str(error)
    again = "then run the same command again"
    if error.errno in _NO_ROOM:
        where = str(error.filename2 or place or error.filename or "")  # a copy names its source
        return Waiting(f"has no room left ({why})", where=where, next_command=f"df -h, {again}")
    if error.errno in _PASSING:
        return Waiting(f"cannot be used now ({why})", where=where)
    return BadInput(f"cannot be used ({why})", where=where)


def _ours(error: Exception) -> HarnessError:
    """The traceback goes to a file, not into a person's face."""
    text = "".join(traceback.format_exception(error))
    try:
        number, path = tempfile.mkstemp(prefix="harness-fault-", suffix=".txt")
        with os.fdopen(number, "w", errors="backslashreplace") as handle:
            handle.write(text)
    except OSError:
        path = ""
    words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return OurFault(
        f"this is a mistake in Harness and not yours ({words}); nothing of a run is lost by it",
        where=path,
        next_command="harness status",
    )


def open_streams() -> None:
    """Give standard input, output and error a place to go when the caller closed them.

    Else the next file that is opened takes their number, and what is printed ends up in it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the life of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the life of the process


def settle_streams() -> None:
    """What cannot be written at the end goes nowhere, and the exit code stays what it is."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            drop(number)


def drop(number: int) -> None:
    """Let what is written to standard output (1) or error (2) from now on go nowhere."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)
