"""Two real machines by sshd on loopback addresses, and a desk to run studies on them from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ssh.machines import SSHD, Machine, make_key
from tests.study.conftest import Desk, Done, make_desk_in


def pytest_sessionstart() -> None:
    """A missing sshd fails; nothing here is skipped."""
    if not Path(SSHD).exists() or os.geteuid() != 0:
        pytest.exit("tests/ssh need root and OpenSSH's server: make ssh", returncode=2)


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
