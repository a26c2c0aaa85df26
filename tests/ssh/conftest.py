"""Two real machines by sshd on loopback addresses, and a desk to run studies on them from."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.hosts.connection import Login
from harness.hosts.ssh import SSHHost, ssh_host
from tests.ssh.machines import SSHD, Machine, make_key
from tests.ssh.netns import Net
from tests.study.conftest import Desk, Done, make_desk_in


def pytest_sessionstart() -> None:
    """A missing sshd fails; nothing here is skipped."""
    if not Path(SSHD).exists() or os.geteuid() != 0:
        pytest.exit("tests/ssh need root and OpenSSH's server: make ssh", returncode=2)


LIMIT_S = 60.0


@dataclass(frozen=True)
class Rack:
    """Machines and a login key for them."""

    folder: Path
    machines: tuple[Machine, ...]

    def hosts_file(self, *, patience_s: float = 60, **changes: Any) -> Path:
        """hosts.json of all machines; `changes` go into the first one."""
        rows = [each.entry(**(changes if i == 0 else {})) for i, each in enumerate(self.machines)]
        path = self.folder / "hosts.json"
        path.write_text(
            json.dumps({
                "schema": "harness/hosts/1", "hosts": rows, "patience_s": patience_s,
                "login_key": str(self.folder / "login"),
            })
        )  # fmt: skip
        return path

    def run(self, desk: Desk, *arguments: str, **more: str) -> Done:
        """`harness run PLAN --hosts FILE`."""
        file = str(self.folder / "hosts.json")
        return desk.harness("run", str(desk.plan), "--hosts", file, *arguments, **more)

    def fleets(self, slot: int) -> list[Path]:
        """Folders of fleets on a machine."""
        return sorted((self.machines[slot].work / "runs").glob("*"))


MakeRack = Callable[..., Rack]


def rack_in(folder: Path, count: int, more: str, made: list[Machine]) -> Rack:
    """Started machines in a folder; `made` is told of each, so that it can be stopped."""
    public = make_key(folder / "login")
    machines = tuple(
        Machine(folder / f"machine-{i}", f"127.0.0.{i + 2}", public, more) for i in range(count)
    )
    for machine in machines:
        made.append(machine)
        machine.start()
    rack = Rack(folder, machines)
    rack.hosts_file()
    return rack


@pytest.fixture
def make_rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeRack]:
    made: list[Machine] = []

    def make(count: int = 2, more: str = "") -> Rack:
        return rack_in(tmp_path_factory.mktemp("rack"), count, more, made)

    yield make
    for machine in made:
        machine.stop()


@pytest.fixture(scope="module")
def shared_rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Two machines that the tests of one file share."""
    made: list[Machine] = []
    yield rack_in(tmp_path_factory.mktemp("rack"), 2, "", made)
    for machine in made:
        machine.stop()


@pytest.fixture
def rack(make_rack: MakeRack) -> Rack:
    """Two machines."""
    return make_rack()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A fresh desk with the toy plan."""
    return make_desk_in(tmp_path)


def login_of(rack: Rack, machine: Machine, *, patience_s: float = LIMIT_S) -> Login:
    return Login(
        name="host-0", address=machine.address, port=machine.port, user="root",
        host_keys=(machine.host_key,), key_file=str(rack.folder / "login"),
        python=sys.executable, patience_s=patience_s,
    )  # fmt: skip


@pytest.fixture
def one(make_rack: MakeRack) -> Rack:
    return make_rack(1)


@pytest.fixture
def host(one: Rack) -> Iterator[SSHHost]:
    machine = one.machines[0]
    made = ssh_host(login_of(one, machine), base=str(machine.work), fleet_id="test")
    yield made
    for job_id in made.jobs():
        made.stop(job_id, reason="the test ended")
    made.link.hang_up()
    made.link.drop()


def wait_until(true: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    ends = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.05)


@pytest.fixture
def linked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rack, Net]]:
    """Two machines in network namespaces, each with a link to here and one to its peer."""
    folder, net = tmp_path_factory.mktemp("linked"), Net()
    public = make_key(folder / "login")
    machines: list[Machine] = []
    try:
        net.up()
        for slot in (0, 1):
            machine = Machine(
                folder / f"machine-{slot}", net.address(slot), public, port=2222,
                wrap=net.wrap(slot), private_address=net.private(slot),
            )  # fmt: skip
            machines.append(machine)
            machine.start()
        rack = Rack(folder, tuple(machines))
        rack.hosts_file(patience_s=600)
        yield rack, net
    finally:
        for machine in machines:
            machine.stop()
        net.down()
