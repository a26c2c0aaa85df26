"""A tree to hosts over real sshd: our packed stream beside SFTP, in one run.

    python bench/ssh_push.py [MIB] [--hosts N] [--gbit RATE]     (root, OpenSSH's server and client)

Without a rate over loopback addresses; with one into network namespaces, over a link of that rate
each (tc tbf). Every way takes its turn three times; medians are printed. SFTP is one session a
host, file after file, and checks nothing; 'hashed there' adds the sha256sum that a push must have
done. With several hosts every way works on all of them at once, and 'one after another' is the
plain SFTP stream that a script would make. Last: what a second push moves.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.hosts import openssh
from harness.hosts.connection import Login
from harness.hosts.ssh import SSHHost, ssh_host
from tests.ssh.machines import Machine, make_key
from tests.ssh.netns import Net

TURNS = 3
SFTP = "SFTP by Paramiko"
Way = Callable[[SSHHost, Path, str], object]


def make_tree(folder: Path, mib: int) -> int:
    """A trainer's shape: 400 text files of 10 KiB and MIB MiB of noise like weights."""
    folder.mkdir()
    for i in range(400):
        (folder / f"source-{i:03}.py").write_text(f"value_{i} = {i}  # a line of a program\n" * 280)
    with open(folder / "model.safetensors", "wb") as out:
        for _ in range(mib):
            out.write(os.urandom(1 << 20))
    return sum(path.stat().st_size for path in folder.iterdir())


def by_paramiko(host: SSHHost, tree: Path, target: str) -> None:
    """Every file by one SFTP session, one after another."""
    host.run(["mkdir", "-p", target], timeout_s=60)
    sftp = host.link.connected.open().open_sftp_client()
    for path in sorted(tree.iterdir()):
        sftp.put(str(path), f"{host.work}/{target}/{path.name}")
    sftp.close()


def by_openssh(host: SSHHost, tree: Path, target: str) -> None:
    """The same by OpenSSH's own sftp, with the options of our ssh."""
    with tempfile.TemporaryDirectory() as name:
        known = Path(name) / "known"
        known.write_text(openssh.known_hosts(host.link.login))
        login, words = host.link.login, openssh.words(host.link.login, known)
        options = [word for word in words[1:-2] if word not in ("-F", "none", "-T", "-l")]
        options = [w for w in options if w not in (login.user, "-p", str(login.port))]
        asked = f"-mkdir {host.work}/{target}\nput -r {tree}/. {host.work}/{target}\n"
        subprocess.run(
            ["sftp", "-q", "-b", "-", "-P", str(login.port), *options,
             f"{login.user}@{login.address}"],
            input=asked.encode(), check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip


def and_hashed(way: Way) -> Way:
    """What a push must know at its end, too: sha256sum of every file there."""

    def work(host: SSHHost, tree: Path, target: str) -> None:
        way(host, tree, target)
        where = shlex.quote(f"{host.work}/{target}")
        host.run(["sh", "-c", f"cd {where} && sha256sum * > /dev/null"], timeout_s=600)

    return work


def packed(from_bytes: int) -> Way:
    """Our push, by the system's ssh for trees of `from_bytes` and more."""

    def work(host: SSHHost, tree: Path, target: str) -> None:
        openssh.LARGE_BYTES = from_bytes
        host.send(tree, target)

    return work


WAYS: dict[str, Way] = {
    SFTP: by_paramiko,
    "SFTP by Paramiko, hashed there": and_hashed(by_paramiko),
    "SFTP by OpenSSH": by_openssh,
    "SFTP by OpenSSH, hashed there": and_hashed(by_openssh),
    "packed, by Paramiko": packed(1 << 62),
    "packed, by ssh": packed(0),
}


def carry(way: Way, tree: Path, target: str, host: SSHHost) -> object:
    """One way to one host."""
    return way(host, tree, target)


def seconds_of(hosts: list[SSHHost], work: Callable[[SSHHost], object]) -> float:
    """Until all hosts are done, at once."""
    began = time.monotonic()
    with ThreadPoolExecutor(len(hosts)) as pool:
        list(pool.map(work, hosts))
    return time.monotonic() - began


def measured(hosts: list[SSHHost], tree: Path) -> dict[str, float]:
    """Median seconds of every way."""
    turns: dict[str, list[float]] = {name: [] for name in WAYS}
    for turn in range(TURNS):
        for number, (name, way) in enumerate(WAYS.items()):
            target = f"way-{number}-{turn}"
            work = partial(carry, way, tree, target)
            turns[name].append(seconds_of(hosts, work))
            for host in hosts:
                if name != "packed, by ssh" or turn:
                    host.run(["rm", "-r", target], timeout_s=60)
    return {name: statistics.median(found) for name, found in turns.items()}


@contextlib.contextmanager
def machines(folder: Path, count: int, gbit: float) -> Iterator[list[Machine]]:
    """Started machines: on loopback addresses, or behind links of a rate."""
    public, net, made = make_key(folder / "login"), Net(), list[Machine]()
    subsystem = "Subsystem sftp internal-sftp"
    try:
        if gbit:
            net.up()
        for slot in range(count):
            address = net.address(slot) if gbit else f"127.0.0.{slot + 2}"
            made.append(
                Machine(folder / f"machine-{slot}", address, public, subsystem,
                        port=2222 if gbit else 0, wrap=net.wrap(slot) if gbit else [])
            )  # fmt: skip
            made[-1].start()
            if gbit:
                subprocess.run(
                    ["tc", "qdisc", "replace", "dev", f"ho{net.tag}{slot}", "root", "tbf", "rate",
                     f"{gbit:g}gbit", "burst", "4mb", "latency", "50ms"], check=True,
                )  # fmt: skip
        yield made
    finally:
        for machine in made:
            machine.stop()
        if gbit:
            net.down()


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("mib", type=int, nargs="?", default=256)
    asked.add_argument("--hosts", type=int, default=1, choices=(1, 2))
    asked.add_argument("--gbit", type=float, default=0.0)
    given = asked.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        machines(Path(name), given.hosts, given.gbit) as made,
    ):
        hosts = [
            ssh_host(
                Login(f"host-{slot}", each.address, each.port, "root", (each.host_key,),
                      str(Path(name) / "login"), sys.executable),
                base=str(each.work), fleet_id="bench",
            )
            for slot, each in enumerate(made)
        ]  # fmt: skip
        try:
            show(hosts, Path(name) / "tree", given.mib, given.gbit)
        finally:
            for host in hosts:
                host.link.hang_up()
                host.link.drop()


def show(hosts: list[SSHHost], tree: Path, mib: int, gbit: float) -> None:
    """One table."""
    size = make_tree(tree, mib)
    for host in hosts:
        host.facts()
    times = measured(hosts, tree)
    again, moved = seconds_of(hosts, lambda host: host.send(tree, "way-5-0")), 0
    moved = sum(host.send(tree, "way-5-0") for host in hosts)
    link = f"{gbit:g} Gbit/s" if gbit else "loopback"
    load = os.getloadavg()[0]
    print(f"{size / 1e6:.0f} MB to {len(hosts)} host(s), {link}, load {load:.1f}")
    for name, seconds in times.items():
        rate = len(hosts) * size / seconds / 1e6
        print(f"  {name:32}{seconds:7.2f} s {rate:6.0f} MB/s {times[SFTP] / seconds:6.2f} x SFTP")
    print(f"  a second push moved {moved} bytes in {again:.2f} s")


if __name__ == "__main__":
    main()
