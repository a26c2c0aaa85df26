"""Test machines: real sshd processes on loopback addresses, each with a host key of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SSHD = "/usr/sbin/sshd"
LIMIT_S = 60.0


def free_port(address: str) -> int:
    with socket.socket() as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])


def make_key(path: Path) -> str:
    """An ed25519 key; returns its public line."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)], check=True
    )
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


@dataclass
class Machine:
    """One sshd: own host key, work folder, settings."""

    folder: Path
    address: str
    login_public: str
    more: str = ""
    """More lines for sshd_config."""
    port: int = 0
    host_key: str = ""
    process: subprocess.Popen[bytes] | None = None
    wrap: list[str] = field(default_factory=list)
    """What sshd is started with (a network namespace)."""
    private_address: str | None = None
    """Where its peers reach it."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.host_key = make_key(self.folder / "host_key")
        self.port = self.port or free_port("127.0.0.1" if self.wrap else self.address)
        (self.folder / "authorized").write_text(self.login_public + "\n")
        (self.folder / "boot_id").write_text("11111111-1111-1111-1111-111111111111\n")

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def entry(self, **changes: Any) -> dict[str, Any]:
        """The machine in hosts.json."""
        return {
            "address": self.address,
            "port": self.port,
            "user": "root",
            "host_key": self.host_key,
            "work": str(self.work),
            "python": sys.executable,
            **({"private_address": self.private_address} if self.private_address else {}),
            **changes,
        }

    def start(self) -> None:
        """Start sshd and wait until it listens."""
        config = self.folder / "sshd_config"
        config.write_text(
            f"ListenAddress {self.address}:{self.port}\n"
            f"HostKey {self.folder}/host_key\nPidFile {self.folder}/sshd.pid\n"
            f"AuthorizedKeysFile {self.folder}/authorized\nStrictModes no\n"
            "UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\nPrintMotd no\n"
            f"SetEnv HARNESS_TEST_BOOT_ID_FILE={self.folder}/boot_id "
            f"PATH={Path(sys.executable).parent}:/usr/bin:/bin\n{self.more}\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        with open(self.folder / "sshd.log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrap, SSHD, "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.wait_listening()

    def wait_listening(self) -> None:
        ends = time.monotonic() + LIMIT_S
        while time.monotonic() < ends:
            try:
                socket.create_connection((self.address, self.port), timeout=5).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError((self.folder / "sshd.log").read_text())

    def sessions(self) -> list[int]:
        """Every process below the listening sshd that is an sshd itself."""
        assert self.process is not None
        return [pid for pid in below(self.process.pid) if b"sshd" in command_line(pid)]

    def stop(self) -> None:
        """Kill the listening sshd and its sessions; what was detached goes on."""
        if self.process is None:
            return
        for pid in self.sessions():
            kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.process = None


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def below(pid: int) -> list[int]:
    """Descendants of a process."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                text = Path(f"/proc/{name}/stat").read_text(errors="replace")
            except OSError:
                continue
            parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
