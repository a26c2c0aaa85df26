"""A tree to one host over real sshd: our packed stream beside one SFTP stream, in one run.

    python bench/ssh_push.py        (root, OpenSSH's server)

Prints both times, the ratio, and what a second push moves.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.hosts.connection import Login
from harness.hosts.ssh import SSHHost, ssh_host
from tests.ssh.machines import Machine, make_key


def make_tree(folder: Path) -> int:
    """A trainer's shape: 400 text files of 10 KiB and 48 MiB of noise like weights."""
    folder.mkdir()
    for i in range(400):
        (folder / f"source-{i:03}.py").write_text(f"value_{i} = {i}  # a line of a program\n" * 280)
    (folder / "model.safetensors").write_bytes(os.urandom(48 << 20))
    return sum(path.stat().st_size for path in folder.iterdir())


def by_sftp(host: SSHHost, tree: Path, target: str) -> None:
    """Every file by one SFTP session, one after another."""
    host.run(["mkdir", "-p", target], timeout_s=60)
    sftp = host.link.connected.open().open_sftp_client()
    for path in sorted(tree.iterdir()):
        sftp.put(str(path), f"{target}/{path.name}")
    sftp.close()


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        public = make_key(folder / "login")
        machine = Machine(folder / "machine", "127.0.0.2", public, "Subsystem sftp internal-sftp")
        machine.start()
        login = Login("host-0", machine.address, machine.port, "root", (machine.host_key,),
                      str(folder / "login"), sys.executable)  # fmt: skip
        host = ssh_host(login, base=str(machine.work), fleet_id="bench")
        try:
            size = make_tree(folder / "tree")
            host.facts()
            sftp_s = timed(lambda: by_sftp(host, folder / "tree", f"{host.work}/sftp"))
            ours_s = timed(lambda: host.send(folder / "tree", "packed"))
            moved = host.send(folder / "tree", "packed")
            print(f"{size / 1e6:.0f} MB: SFTP {sftp_s:.2f} s, packed and checked {ours_s:.2f} s, "
                  f"ratio {sftp_s / ours_s:.1f}; a second push moved {moved} bytes")  # fmt: skip
        finally:
            host.link.hang_up()
            host.link.drop()
            machine.stop()


if __name__ == "__main__":
    main()
