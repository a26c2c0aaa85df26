"""The SSH connection to one machine: pinned keys, limits on every wait, made again when it died."""

from __future__ import annotations

import contextlib
import logging
import shlex
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError, Waiting
from harness.hosts import pins
from harness.hosts.protocol import Unreachable

if TYPE_CHECKING:
    import fabric
    import paramiko

CONNECT_S = 10.0
BANNER_S = 20.0
AUTH_S = 20.0
KEEPALIVE_S = 5
SILENT_S = 20.0
"""Nothing acknowledged, or no answer, for this long: the connection is dead."""
SHORT_S = 5.0
"""The same for one short try, so that nobody waits on one host while another needs help."""
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 5.0)


@dataclass(frozen=True)
class Login:
    """How a machine is reached. No secret: `key_file` only names one."""

    name: str
    """Slot name, for sentences."""
    address: str
    port: int
    user: str
    host_keys: tuple[str, ...]
    key_file: str | None = None
    """Absent: the user's SSH agent and default keys."""
    python: str = "python3"
    patience_s: float = 90.0
    """How long a host may be out of reach before it counts as lost."""

    @property
    def where(self) -> str:
        """For sentences: 'host-0 (me@10.0.0.5)'."""
        return f"{self.name} ({self.user}@{self.address})"


class Broken(Exception):
    """The connection or channel is not usable any more; another one may be."""


@contextlib.contextmanager
def broken() -> Iterator[None]:
    """What Paramiko raises when a connection dies, as `Broken`."""
    import paramiko

    try:
        yield
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise Broken(words_of(error)) from None


@contextlib.contextmanager
def own_files() -> Iterator[None]:
    """Errors of this computer's files, which are not the connection's, as Waiting."""
    try:
        yield
    except OSError as error:
        raise Waiting(
            f"a file of this computer cannot be used ({error.strerror or error})",
            where=str(error.filename or "a copy to or from a host"),
        ) from None


def words_of(error: BaseException) -> str:
    """What an error says, or its name when it says nothing."""
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _quick_transport(sock: Any, **more: Any) -> paramiko.Transport:
    """A transport that asks for AES-GCM first: cipher and integrity in one pass."""
    import paramiko

    # What goes wrong is raised and said; Paramiko's thread would print its traceback besides.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    transport = paramiko.Transport(sock, **more)
    options = transport.get_security_options()
    quick = [name for name in options.ciphers if "gcm" in name]
    options.ciphers = (*quick, *(name for name in options.ciphers if name not in quick))
    return transport


@dataclass
class Connected:
    """The connection to one machine. Safe for several threads."""

    login: Login
    _connection: fabric.Connection | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def open(self, *, patience_s: float | None = None) -> paramiko.Transport:
        """The living connection, made again when it died, by the wall clock for `patience_s`.

        Raises Refused (host key), Waiting (login key), Unreachable.
        """
        patience = self.login.patience_s if patience_s is None else patience_s
        began, tries = time.monotonic(), 0
        with self.lock:
            while True:
                if (known := self.living()) is not None:
                    return known
                try:
                    return self._open(CONNECT_S if patience else SHORT_S)
                except (OSError, EOFError, Broken) as error:
                    waited = time.monotonic() - began
                    if waited >= patience:
                        raise Unreachable(
                            f"the host cannot be reached for {waited:.0f} s ({words_of(error)})",
                            where=self.login.where,
                        ) from None
                pause = _PAUSES_S[min(tries, len(_PAUSES_S) - 1)]
                tries += 1
                time.sleep(min(pause, max(0.0, patience - waited)))

    def living(self) -> paramiko.Transport | None:
        """The connection while it lives."""
        if self._connection is None:
            return None
        transport: paramiko.Transport | None = self._connection.transport
        if transport is not None and transport.is_active():
            return transport
        self.drop()
        return None

    def _open(self, connect_s: float) -> paramiko.Transport:
        """Connect once. Raises Refused, Waiting; OSError, EOFError or Broken to try again."""
        import paramiko
        from fabric import Config, Connection

        login = self.login
        if not login.host_keys:
            raise pins.missing(login.name, login.address, login.port)
        slow = connect_s >= CONNECT_S
        wanted: dict[str, Any] = {
            "banner_timeout": BANNER_S if slow else connect_s,
            "auth_timeout": AUTH_S if slow else connect_s,
        }
        if login.key_file:
            wanted |= {"key_filename": login.key_file, "allow_agent": False, "look_for_keys": False}
        connection = Connection(
            login.address, user=login.user, port=login.port, connect_timeout=int(connect_s),
            connect_kwargs=wanted, config=Config(overrides={"load_ssh_configs": False}),
        )  # fmt: skip
        wanted["transport_factory"] = _quick_transport
        client = paramiko.SSHClient()
        pins.pin(client, login.address, login.port, login.host_keys, login.where)
        connection.client = client  # Fabric's own accepts every key
        try:
            connection.open()
        except paramiko.BadHostKeyException as error:
            raise self._other_key(pins.fingerprint(error.key)) from None
        except paramiko.AuthenticationException as error:
            client.close()
            raise Waiting(
                f"the machine refuses the login key ({words_of(error)})", where=login.where,
                next_command=shlex.join(["ssh", "-v", "-p", str(login.port),
                                         f"{login.user}@{login.address}"]),
            ) from None  # fmt: skip
        except paramiko.SSHException as error:
            client.close()
            if "known_hosts" in str(error):
                raise self._other_key("of another type") from None
            raise Broken(words_of(error)) from None
        except OSError:
            client.close()
            raise
        transport: paramiko.Transport = connection.transport
        transport.set_keepalive(KEEPALIVE_S)
        with contextlib.suppress(OSError, AttributeError):
            raw: Any = transport.sock
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENT_S * 1000))
        self._connection = connection
        return transport

    def _other_key(self, shown: str) -> HarnessError:
        login = self.login
        pinned = [pins.fingerprint(pins.parse_key(k, where=login.where)) for k in login.host_keys]
        return pins.changed(login.name, login.address, login.port, shown, pinned)

    def drop(self) -> None:
        """Forget the connection; the next use makes a new one."""
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with contextlib.suppress(Exception):  # it is broken already
                    connection.client.close()
