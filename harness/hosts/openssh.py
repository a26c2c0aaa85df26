"""Large transfers through the system's ssh client, where there is one, under the same pinned keys.

Paramiko encrypts and counts windows in Python and moves some tens of megabytes a second of one
core; OpenSSH's client does the same work in C. It is given this key file and these host keys and
nothing else: no user configuration, no prompt. Whatever it cannot do, the caller does by Paramiko.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from harness.errors import Waiting
from harness.hosts.connection import CONNECT_S, KEEPALIVE_S, SILENT_S, Login, own_files
from harness.hosts.link import PIECE, Ended, Feed, Link, Tail

LARGE_BYTES = 8 << 20
"""From here on a second connection, by another program, is worth its start."""
PIPE_BYTES = 1 << 20
"""Of the pipes to and from ssh: fewer turns between the processes than with the usual 64 KiB."""
OWN_FAILURE = 255
"""ssh's own exit status when it could not connect, log in or go on."""


class Unusable(Exception):
    """It did not work this way; nothing is wrong with the host for that."""


def transfer(
    link: Link,
    script: str,
    size: int,
    *,
    limit_s: float,
    feed: Feed | None = None,
    into: BinaryIO | None = None,
) -> Ended:
    """Run a script that moves `size` bytes: many by the system's ssh where that works.

    Raises what `Link.run` raises.
    """
    take = into.write if into else None
    if size >= LARGE_BYTES:
        try:
            return run(link.login, script, limit_s=limit_s, feed=feed, take=take)
        except Unusable:
            if into is not None:
                into.seek(0)
                into.truncate()
    return link.run(script, limit_s=limit_s, feed=feed, take=take)


def words(login: Login, known: Path) -> list[str]:
    """The ssh command up to the remote command; `known` holds the pinned keys."""
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": f'"{known}"',
        "GlobalKnownHostsFile": "/dev/null",
        "UpdateHostKeys": "no",
        "ControlPath": "none",
        "ClearAllForwardings": "yes",
        "LogLevel": "ERROR",
        "Ciphers": "^aes128-gcm@openssh.com",
        "ConnectTimeout": f"{CONNECT_S:.0f}",
        "ServerAliveInterval": f"{KEEPALIVE_S}",
        "ServerAliveCountMax": f"{SILENT_S / KEEPALIVE_S:.0f}",
    }
    argv = ["ssh", "-F", "none", "-T", "-p", str(login.port), "-l", login.user]
    for name, value in options.items():
        argv += ["-o", f"{name}={value}"]
    if login.key_file:
        argv += ["-i", login.key_file, "-o", "IdentitiesOnly=yes"]
    return [*argv, "--", login.address]


def known_hosts(login: Login) -> str:
    """The pinned keys as a known_hosts file."""
    name = login.address if login.port == 22 else f"[{login.address}]:{login.port}"
    return "".join(f"{name} {key}\n" for key in login.host_keys)


def run(
    login: Login,
    script: str,
    *,
    limit_s: float,
    feed: Feed | None = None,
    take: Callable[[bytes], object] | None = None,
) -> Ended:
    """Run a script once; `feed` writes its input (else empty), `take` gets its output.

    Raises Unusable (nothing was lost by trying), Waiting for a file of this computer.
    """
    if shutil.which("ssh") is None or not login.host_keys:
        raise Unusable("there is no ssh client")
    with tempfile.TemporaryDirectory(prefix="harness-") as name, _Ending() as ending:
        folder = Path(name)
        (folder / "known").write_text(known_hosts(login))
        argv = [*words(login, folder / "known"), f"exec sh -c {shlex.quote(script)}"]
        with open(folder / "out", "w+b") as out, open(folder / "err", "w+b") as err:
            process = ending.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
                stdout=subprocess.PIPE if take else out, stderr=err, pipesize=PIPE_BYTES,
            )  # fmt: skip
            _move(process, feed, take)
            try:
                code = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                raise Waiting("the transfer outlasts its limit", where=login.where) from None
            if code == OWN_FAILURE or code < 0:
                raise Unusable(_end(err))
            return Ended(code, _end(out), _end(err))


class _Ending:
    """Leaves no ssh process behind, whatever happens."""

    process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _Ending:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _move(
    process: subprocess.Popen[bytes], feed: Feed | None, take: Callable[[bytes], object] | None
) -> None:
    with own_files():
        if feed is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # its exit status says why
                feed(process.stdin.write)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        if take is not None and process.stdout is not None:
            while piece := process.stdout.read(PIECE):
                take(piece)


def _end(handle: BinaryIO) -> str:
    handle.seek(0)
    tail = Tail()
    while piece := handle.read(PIECE):
        tail.add(piece)
    return tail.text()
