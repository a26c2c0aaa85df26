"""Differences of allowance counters, and disks whose read-ahead follows their use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from harness import jobs
from harness.hosts.protocol import Completed, Host
from harness.receipts import Allowance
from harness.stages.machines import exceeded_line, gpu_memory_lines, read_ahead, route_lines
from harness.study import Study


def seen(**counters: int) -> Allowance:
    return Allowance(host="host-0", interface="ens5", counters=counters)


def test_what_was_added_is_said_and_is_not_right() -> None:
    line = exceeded_line((seen(bw_in=3, pps=5),), seen(bw_in=7, pps=5))
    assert (line.ok, line.observed) == (False, "bw_in +4, pps +0")


def test_nothing_added_is_right() -> None:
    line = exceeded_line((seen(bw_in=3),), seen(bw_in=3))
    assert line.ok and "+0" in line.observed


def test_counters_that_began_again_count_whole() -> None:
    assert exceeded_line((seen(bw_in=9),), seen(bw_in=2)).observed == "bw_in +2"


def test_an_interface_that_was_not_seen_before_counts_whole() -> None:
    other = Allowance(host="host-1", interface="ens5", counters={"bw_in": 1})
    assert not exceeded_line((other,), seen(bw_in=1)).ok


def test_no_counters_are_not_known_and_no_failure() -> None:
    none = Allowance(host="host-0", interface="lo", counters={}, why="there is no ethtool")
    line = exceeded_line((), none)
    assert line.ok and "there is no ethtool" in line.observed


@pytest.mark.parametrize(
    ("interface", "address", "ok"),
    [("ens5", "10.0.0.2", True), ("lo", "10.0.0.2", False), ("lo", "127.0.0.2", True),
     ("lo", "a-name", False)],
)  # fmt: skip
def test_a_route_by_the_loopback_to_another_machine_is_wrong(
    monkeypatch: pytest.MonkeyPatch, interface: str, address: str, ok: bool
) -> None:
    way = {"interface": interface, "source": "10.0.0.1"}
    monkeypatch.setattr(jobs, "route", lambda host, peer: way)
    pair = [SimpleNamespace(name=f"host-{i}", address=address) for i in range(2)]
    lines = list(route_lines(study_on("hosts-file"), cast(tuple[Host, ...], tuple(pair))))
    assert [line.ok for line in lines] == [ok, ok]


@dataclass
class Disk:
    """As much of a host as read-ahead needs: a disk that may refuse to be set."""

    settable: bool = True
    kib: int = 256
    name: str = "host-0"
    work: str = "/w"
    asked: list[str] = field(default_factory=list)

    def helper(self, module: str, *words: str, timeout_s: float = 0) -> Completed:
        self.asked = list(words)
        if "--set" in words and self.settable:
            self.kib = int(words[words.index("--set") + 1])
        why = "it cannot be set" if "--set" in words and not self.settable else ""
        told = json.dumps({"kib": self.kib, "device": "nvme0n1", "why": why})
        return Completed(argv=words, exit_code=0, stdout=told, stderr="", seconds=0.0)


def study_on(kind: str) -> Study:
    ahead = SimpleNamespace(training_kib=128, staging_kib=4096)
    hosts = SimpleNamespace(aws=SimpleNamespace(read_ahead=ahead))
    return cast(Study, SimpleNamespace(fleet_kind=kind, plan=SimpleNamespace(hosts=hosts)))


def look(study: Study, disk: Disk, use: Literal["training", "staging"]) -> Any:
    return read_ahead(study, cast(Host, disk), use)


def test_the_stacks_disks_follow_their_use() -> None:
    disk, study = Disk(), study_on("stack")
    assert look(study, disk, "staging").ok and disk.kib == 4096
    line = look(study, disk, "training")
    assert line.ok and disk.kib == 128 and line.observed == "128 KiB"


def test_a_disk_that_cannot_be_set_is_said() -> None:
    line = look(study_on("stack"), Disk(settable=False), "training")
    assert not line.ok and line.observed == "256 KiB (it cannot be set)"


@pytest.mark.parametrize("use", ["training", "staging"])
def test_a_users_disk_is_only_read(use: Literal["training", "staging"]) -> None:
    disk = Disk()
    line = look(study_on("hosts-file"), disk, use)
    assert line.ok and disk.kib == 256 and "left as it is" in line.observed


class Gpus:
    """A machine whose nvidia-smi says what is given."""

    name = "host-0"

    def __init__(self, folder: Path, said: str) -> None:
        tool = folder / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\nprintf '{said}'\n")
        tool.chmod(0o755)
        self._path = f"{folder}:/usr/bin:/bin"

    def helper(self, module: str, *words: str, timeout_s: float = 0) -> Completed:
        argv = [sys.executable, "-m", f"harness.onhost.{module}", *words]
        environment = {**os.environ, "PATH": self._path}
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
        return Completed(argv=words, exit_code=0, stdout=done.stdout, stderr="", seconds=0.0)


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("3\\n410\\n", [("3 MiB, 410 MiB in use", True)]),
        ("3\\n40210\\n", [("3 MiB, 40210 MiB in use", False)]),
        ("[N/A]\\n", []),
        ("", []),
    ],
)
def test_memory_that_is_left_on_a_gpu_is_seen(
    tmp_path: Path, said: str, seen: list[tuple[str, bool]]
) -> None:
    lines = gpu_memory_lines((cast(Host, Gpus(tmp_path, said)),))
    assert [(line.observed, line.ok) for line in lines] == seen
