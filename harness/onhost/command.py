"""What every program here shares: its error, its exit codes, the clock and detaching."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainer import contract

UTC_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


class Fault(Exception):
    """A mistake or refusal, said in one sentence. `exit_code` is the program's exit status."""

    def __init__(self, sentence: str, *, exit_code: int = 2) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def run_program(program: Callable[[], int]) -> None:
    """Run a program's main function and exit: faults become one sentence on standard error."""
    try:
        status = program()
        sys.stdout.flush()
    except Fault as fault:
        print(str(fault), file=sys.stderr)
        status = fault.exit_code
    except contract.ContractError as error:
        print(f"{error}.", file=sys.stderr)
        status = 2
    except OSError as error:
        print(f"{error.filename or 'the host'}: {error.strerror or error}.", file=sys.stderr)
        status = 2
    sys.exit(status)


def print_json(value: Any) -> None:
    """One canonical JSON value on standard output."""
    sys.stdout.write(contract.canonical(value).decode() + "\n")


def utc_now() -> str:
    """The time now as `2026-11-29T20:15:01.123456Z`."""
    return datetime.now(UTC).strftime(UTC_FORMAT)


def seconds_until(utc: str) -> float:
    """Seconds from now until a UTC time (negative: past). Raises Fault when it is not one."""
    try:
        moment = datetime.strptime(utc, UTC_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise Fault(f"'{utc}' is not a UTC time such as 2026-11-29T20:15:01.123456Z.") from None
    return moment.timestamp() - time.time()


class Limit:
    """A moment that comes by the wall clock or by the monotonic clock, whichever is first.

    So a clock that is set back does not put it off.
    """

    def __init__(self, utc: str) -> None:
        self.utc = utc
        self._monotonic = time.monotonic() + seconds_until(utc)

    def passed(self) -> bool:
        """Whether the moment has come."""
        return time.monotonic() >= self._monotonic or seconds_until(self.utc) <= 0


def read_optional(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None when the file is absent."""
    try:
        value = contract.read_json(path)
    except FileNotFoundError:
        return None
    if not isinstance(value, dict):
        raise contract.ContractError(f"{path} is not a JSON object")
    return value


def try_lock(path: Path, *, wait_s: float = 0.0, unless: Path | None = None) -> int | None:
    """Take an exclusive flock on a file: its descriptor, or None when another process has it.

    Waits up to `wait_s`, because whoever asks whether the lock is held holds it for an instant;
    gives up at once when the file `unless` exists.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() >= until or (unless is not None and unless.exists()):
                os.close(handle)
                return None
            time.sleep(0.01)


def lock_held(path: Path) -> bool:
    """Whether some process holds the flock on a file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def detach(work: Callable[[], None], *, errors: Path) -> None:
    """Run `work` in a detached grandchild (own session, no inherited files, folder /).

    Returns at once. Standard error goes to the file `errors`. The grandchild never returns.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        _close_inherited(errors)
        work()
        os._exit(0)
    except (Fault, contract.ContractError) as fault:
        os.write(2, f"{str(fault).rstrip('.')}\n".encode())
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(1)


def _close_inherited(errors: Path) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.chdir("/")
    for target, source in ((0, null), (1, null), (2, log)):
        os.dup2(source, target)
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))


def parser(description: str | None) -> argparse.ArgumentParser:
    """An argument parser that does not guess abbreviations."""
    return argparse.ArgumentParser(description=description, allow_abbrev=False)
