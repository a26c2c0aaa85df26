"""Commands and questions over one machine's SSH connection, none of them waited on for ever.

Commands run with their input closed (or fed), a limit on the machine itself and at most the end of
their output in memory. A second channel holds the answering helper (`harness.onhost.answer`).
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.errors import Waiting
from harness.hosts.connection import (
    SHORT_S,
    SILENT_S,
    Broken,
    Connected,
    Login,
    broken,
    own_files,
)
from harness.hosts.protocol import Unreachable
from trainer import contract

if TYPE_CHECKING:
    import paramiko

HELD_OPEN_S = 3.0
"""A command that ended may have left a process that holds its output open; it is not waited for."""
SHOWN_BYTES = 4 << 20
"""At most this much of a command's output is kept (its end)."""
PIECE = 1 << 18
NO_HELPER = 97
Feed = Callable[[Callable[[bytes], object]], object]
"""Writes a command's whole input with the function that it is given."""


class Tail:
    """The end of an output of any length."""

    def __init__(self, limit: int = SHOWN_BYTES) -> None:
        self._limit, self._data = limit, bytearray()

    def add(self, piece: bytes) -> None:
        """Keep the newest bytes."""
        self._data += piece
        if len(self._data) > 2 * self._limit:
            del self._data[: -self._limit]

    def text(self) -> str:
        """What is kept."""
        return bytes(self._data[-self._limit :]).decode("utf-8", "replace")


@dataclass
class Ended:
    """A remote command that ended."""

    code: int
    out: str
    err: str


@dataclass
class Link:
    """What is done over the connection to one machine. Safe for several threads."""

    connected: Connected
    helper: str
    """Folder of the answering helper on the machine."""
    install: Callable[[Link], None]
    """Puts the helper there; called when it is missing."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment of the answering helper."""
    boot_id: str = ""
    """As the machine said when it was last reached."""
    _answering: dict[str, paramiko.Channel] = field(default_factory=dict)
    """By the folder of the helper that answers."""

    @property
    def login(self) -> Login:
        """How the machine is reached."""
        return self.connected.login

    def drop(self) -> None:
        """Forget the connection; the next use makes a new one."""
        with self.connected.lock:
            self._answering.clear()
            self.connected.drop()

    def hang_up(self) -> None:
        """End the answering helper and wait until it is gone."""
        with self.connected.lock:
            channels = list(self._answering.values())
            self._answering.clear()
            for channel in channels:
                with contextlib.suppress(OSError, EOFError):
                    channel.shutdown_write()
                    until = time.monotonic() + 5
                    while not channel.exit_status_ready() and time.monotonic() < until:
                        time.sleep(0.01)
                    channel.close()

    # --- commands -------------------------------------------------------------------------------

    def run(
        self,
        script: str,
        *,
        limit_s: float,
        feed: Feed | None = None,
        take: Callable[[bytes], object] | None = None,
    ) -> Ended:
        """Run a shell script. `feed` writes its input (else closed), `take` gets its output.

        A connection that breaks on the way is made again and the script run again, so it must bear
        that. Raises Unreachable; Waiting when it outlasts `limit_s` (it is ended on the machine).
        """
        began = time.monotonic()
        while True:
            transport = self.connected.open()
            try:
                return self._once(transport, script, limit_s, feed, take)
            except Broken as error:
                self.drop()
                if take is not None or time.monotonic() - began > limit_s:
                    raise Unreachable(
                        f"the connection broke ({error})", where=self.login.where
                    ) from None

    def _once(
        self,
        transport: paramiko.Transport,
        script: str,
        limit_s: float,
        feed: Feed | None,
        take: Callable[[bytes], object] | None,
    ) -> Ended:
        out, err = Tail(), Tail()
        keep = out.add if take is None else lambda piece: _locally(take, piece)
        with broken(), contextlib.closing(transport.open_session(timeout=SILENT_S)) as channel:
            channel.settimeout(SILENT_S)
            channel.exec_command(f"exec sh -c {shlex.quote(script)}")
            if feed is not None:
                _locally(feed, lambda data: _send(channel, data))
            channel.shutdown_write()
            until = time.monotonic() + limit_s + SILENT_S
            alive = time.monotonic()
            while True:
                moved = self._drain(channel, keep, err)
                silent = time.monotonic() - alive
                if moved:
                    alive = time.monotonic()
                elif channel.exit_status_ready() and (
                    channel.eof_received or channel.closed or silent > HELD_OPEN_S
                ):
                    self._drain(channel, keep, err)
                    break
                else:
                    if silent > SILENT_S:
                        self.ping(transport)
                        alive = time.monotonic()
                    if time.monotonic() > until:
                        raise Waiting("the command outlasts its limit", where=self.login.where)
                    channel.status_event.wait(0.01)
            code = channel.recv_exit_status()
        if code < 0:
            raise Broken("it ended without an exit status")
        return Ended(code, out.text(), err.text())

    @staticmethod
    def _drain(channel: paramiko.Channel, keep: Callable[[bytes], object], err: Tail) -> bool:
        moved = False
        while channel.recv_ready():
            keep(channel.recv(PIECE))
            moved = True
        while channel.recv_stderr_ready():
            err.add(channel.recv_stderr(PIECE))
            moved = True
        return moved

    def ping(self, transport: paramiko.Transport) -> None:
        """Raises Broken unless the machine's sshd answers within `SILENT_S`."""
        with broken():
            transport.open_session(timeout=SILENT_S).close()

    # --- questions ------------------------------------------------------------------------------

    def ask(
        self,
        request: dict[str, Any],
        payload: bytes = b"",
        *,
        patience_s: float | None = None,
        helper: str | None = None,
    ) -> tuple[dict[str, Any], bytes]:
        """Ask the answering helper. Raises Unreachable, and Waiting with what it says is wrong.

        With patience 0 there is one short try. `helper`: the folder of another copy of it.
        """
        began, tries = time.monotonic(), 0
        patience = self.login.patience_s if patience_s is None else patience_s
        with self.connected.lock:
            while True:
                try:
                    told, data = self._ask(request, payload, patience, helper or self.helper)
                    break
                except Broken as error:
                    self.drop()
                    tries += 1
                    if (tries > 1 or patience == 0) and time.monotonic() - began >= patience:
                        raise Unreachable(
                            f"the host does not answer ({error})", where=self.login.where
                        ) from None
        if "fault" in told:
            raise Waiting(str(told["fault"]).rstrip("."), where=self.login.name)
        return told, data

    def _ask(
        self, request: dict[str, Any], payload: bytes, patience_s: float, helper: str
    ) -> tuple[dict[str, Any], bytes]:
        channel = self._answering.get(helper)
        if channel is None or channel.closed or self.connected.living() is None:
            transport = self.connected.open(patience_s=patience_s)
            channel = self._answering[helper] = self._begin_answering(transport, helper)
        with broken():
            channel.settimeout(SILENT_S if patience_s else SHORT_S)
            channel.sendall(contract.canonical(request) + b"\n" + payload)
            told = contract.parse(_line(channel), where="the answer")
            return told, _exactly(
                channel, int(told.get("bytes", 0)) if request["ask"] == "read" else 0
            )

    def _begin_answering(self, transport: paramiko.Transport, helper: str) -> paramiko.Channel:
        script = (
            f"test -e {shlex.quote(helper)}/harness/onhost/answer.py || exit {NO_HELPER}; "
            + "exec env "
            + shlex.join([*assignments({**self.environment, **helper_variables(helper)}),
                          self.login.python, "-m", "harness.onhost.answer"])
        )  # fmt: skip
        for installed in (False, True):
            with broken():
                channel = transport.open_session(timeout=SILENT_S)
                channel.settimeout(SILENT_S)
                channel.exec_command(f"exec sh -c {shlex.quote(script)}")
                first = _line(channel, needed=False)
            if first:
                self.boot_id = str(contract.parse(first, where="the answer")["boot_id"])
                return channel
            said = _rest(channel)
            missing = channel.recv_exit_status() == NO_HELPER and helper == self.helper
            if installed or not missing:
                break
            self.install(self)
        raise Waiting(f"the helper does not run there ({said})", where=self.login.where)


def _send(channel: paramiko.Channel, data: bytes) -> None:
    with broken():
        channel.sendall(data)


def _locally(work: Callable[[Any], object], given: Any) -> None:
    with own_files():
        work(given)


def _line(channel: paramiko.Channel, *, needed: bool = True) -> bytes:
    """A line that is not empty: those only say that the helper lives."""
    line = b""
    while not line.strip() or not line.endswith(b"\n"):
        piece = channel.recv(1)
        if not piece:
            if needed:
                raise EOFError("the helper ended")
            return b""
        line += piece
    return line


def _exactly(channel: paramiko.Channel, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = channel.recv(min(PIECE, count - len(data)))
        if not piece:
            raise EOFError("the helper ended")
        data += piece
    return bytes(data)


def _rest(channel: paramiko.Channel) -> str:
    tail = Tail(65536)
    with contextlib.suppress(OSError):
        while piece := channel.recv_stderr(PIECE):
            tail.add(piece)
    return " ".join(tail.text().split())[-300:] or "it said nothing"


def helper_variables(folder: str) -> dict[str, str]:
    """Environment variables under which a helper's Python finds `harness.onhost`."""
    return {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


def assignments(environment: Mapping[str, str]) -> Sequence[str]:
    """Words for `env`."""
    return [f"{name}={value}" for name, value in environment.items()]
