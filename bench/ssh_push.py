"""A tree to one host over real sshd: our packed stream beside one SFTP stream, in one run.

    python bench/ssh_push.py [MIB]       (root, OpenSSH's server and client)

Takes turns three times and prints the median times of SFTP, of the packed stream through Paramiko
and of the packed stream through the system's ssh client, the ratios, and what a second push moves.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.hosts import openssh
from harness.hosts.connection import Login
from harness.hosts.ssh import SSHHost, ssh_host
from tests.ssh.machines import Machine, make_key


def make_tree(folder: Path, mib: int) -> int:
    """A trainer's shape: 400 text files of 10 KiB and MIB MiB of noise like weights."""
    folder.mkdir()
    for i in range(400):
        (folder / f"source-{i:03}.py").write_text(f"value_{i} = {i}  # a line of a program\n" * 280)
    (folder / "model.safetensors").write_bytes(os.urandom(mib << 20))
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


def packed(host: SSHHost, tree: Path, target: str, *, from_bytes: int) -> None:
    """Our push, by the system's ssh from `from_bytes` on."""
    openssh.LARGE_BYTES = from_bytes
    host.send(tree, target)


def measured(host: SSHHost, tree: Path) -> dict[str, float]:
    """Median seconds of three turns each."""
    turns: dict[str, list[float]] = {"SFTP": [], "Paramiko, packed": [], "ssh, packed": []}
    for turn in range(3):
        turns["SFTP"].append(timed(partial(by_sftp, host, tree, f"{host.work}/sftp-{turn}")))
        for name, from_bytes in (("Paramiko, packed", 1 << 62), ("ssh, packed", 0)):
            target = f"{name.split(',')[0].lower()}-{turn}"
            work = partial(packed, host, tree, target, from_bytes=from_bytes)
            turns[name].append(timed(work))
    return {name: statistics.median(found) for name, found in turns.items()}


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
            size = make_tree(folder / "tree", int(sys.argv[1]) if len(sys.argv) > 1 else 256)
            host.facts()
            times = measured(host, folder / "tree")
            moved = host.send(folder / "tree", "ssh-0")
            for name, seconds in times.items():
                print(f"{name}: {seconds:.2f} s, {size / seconds / 1e6:.0f} MB/s, "
                      f"{times['SFTP'] / seconds:.2f} x SFTP")  # fmt: skip
            print(f"{size / 1e6:.0f} MB; a second push moved {moved} bytes")
        finally:
            host.link.hang_up()
            host.link.drop()
            machine.stop()


if __name__ == "__main__":
    main()
