"""Finding and ending processes by /proc: a job's descendants, and what a dead supervisor left."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36


class Process(NamedTuple):
    """One line of /proc: enough to know a process again."""

    pid: int
    parent: int
    session: int
    start: int
    """Start time in clock ticks since boot: with the pid it names the process."""
    state: str
    """One letter; Z is a zombie."""


def boot_id() -> str:
    """The kernel's identity of this boot; a test's machine may stand in for a rebooted one."""
    if stand_in := os.environ.get("HARNESS_TEST_BOOT_ID_FILE"):
        return Path(stand_in).read_text().strip()
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def look(pid: int) -> Process | None:
    """What /proc says of a process; None when there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0])


def lives(pid: int, start: int) -> bool:
    """Whether the process that had this id and start time still runs (a zombie does not)."""
    seen = look(pid)
    return seen is not None and seen.start == start and seen.state not in "ZX"


def everything() -> list[Process]:
    """Every process that can be seen."""
    pids = [int(name) for name in os.listdir(PROC) if name.isdigit()]
    return [process for pid in pids if (process := look(pid)) is not None]


def environment_of(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty when it cannot be read."""
    try:
        data = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.decode("utf-8", "replace").partition("=") for item in data.split(b"\0") if item)
    return {name: value for name, _, value in pairs}


def command_of(pid: int, *, limit: int = 120) -> str:
    """A process's command line as printable text of at most `limit` characters."""
    try:
        data = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return "?"
    text = data.replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return "".join(c if c.isprintable() else "?" for c in text)[:limit] or "?"


def become_subreaper() -> None:
    """Adopt orphaned descendants, so that none can leave the tree. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this kernel has no child subreaper")


def descendants(pid: int) -> list[Process]:
    """Living processes below `pid` in the tree, zombies left out."""
    children: dict[int, list[Process]] = {}
    for process in everything():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [process.pid for process in below]
    return [process for process in found if process.state != "Z"]


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Send a signal to each process that is still the one that was seen."""
    for process in processes:
        if lives(process.pid, process.start):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


def end(
    find: Callable[[], list[Process]],
    *,
    grace_s: float = 5.0,
    kill_s: float = 10.0,
    idle: Callable[[], None] = lambda: None,
) -> list[Process]:
    """End all that `find` returns: SIGTERM, after `grace_s` SIGKILL until none is left.

    `idle` runs between looks (a parent reaps there). Returns what outlives `kill_s` of SIGKILL.
    """
    told: set[tuple[int, int]] = set()
    began = time.monotonic()
    while True:
        idle()
        left = find()
        waited = time.monotonic() - began
        if not left or waited > grace_s + kill_s:
            return left
        if waited < grace_s:
            send([p for p in left if (p.pid, p.start) not in told], signal.SIGTERM)
            told |= {(p.pid, p.start) for p in left}
        else:
            send(left, signal.SIGKILL)
        time.sleep(0.02)
