"""Files to and from one machine over real sshd: whole, by hash, and none twice."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import Waiting
from harness.hosts import openssh
from harness.hosts.link import Link
from harness.hosts.openssh import LARGE_BYTES
from harness.hosts.ssh import SSHHost, ssh_host
from harness.onhost import trees
from tests.ssh.conftest import LIMIT_S, Rack, login_of
from tests.ssh.machines import make_key
from tests.ssh.netns import Net


class TestTransfers:
    def test_a_tree_goes_and_comes_back_and_a_second_push_moves_nothing(
        self, host: SSHHost, tmp_path: Path
    ) -> None:
        tree = tmp_path / "tree"
        for i in range(40):
            (tree / f"d{i % 4}").mkdir(parents=True, exist_ok=True)
            (tree / f"d{i % 4}" / f"f{i}").write_bytes(os.urandom(i * 1000))
        (tree / "run").write_text("#!/bin/sh\n")
        (tree / "run").chmod(0o755)
        assert host.send(tree, "in/tree") > 0
        assert host.send(tree, "in/tree") == 0
        host.get("in/tree", tmp_path / "back")
        names = sorted(p.relative_to(tree).as_posix() for p in tree.rglob("*") if p.is_file())
        assert names == sorted(
            p.relative_to(tmp_path / "back").as_posix()
            for p in (tmp_path / "back").rglob("*")
            if p.is_file()
        )
        assert all((tree / n).read_bytes() == (tmp_path / "back" / n).read_bytes() for n in names)
        assert os.access(tmp_path / "back" / "run", os.X_OK)

    def test_what_is_there_and_differs_is_replaced(self, host: SSHHost, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "x").write_text("one")
        host.put(tmp_path / "a", "in/a")
        (tmp_path / "a" / "x").write_text("two")
        host.put(tmp_path / "a", "in/a")
        assert host.read("in/a/x") == b"two"

    def test_an_absent_file_is_said(self, host: SSHHost, tmp_path: Path) -> None:
        with pytest.raises(Waiting, match="No such file"):
            host.get("in/nothing", tmp_path / "x")
        assert host.read("in/nothing") == b""


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A tree that is large enough for the system's ssh client."""
    tree = tmp_path / "large"
    tree.mkdir()
    (tree / "weights").write_bytes(os.urandom(LARGE_BYTES + 1))
    (tree / "text").write_text("a line of a program\n" * 1000)
    return tree


def same(one: Path, other: Path) -> bool:
    return all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in ("weights", "text")
    )


class TestLargeTransfers:
    def test_the_systems_ssh_moves_them_both_ways(
        self, host: SSHHost, large: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host.facts()

        def refuse(*_: object, **more: object) -> None:
            raise AssertionError("this transfer was not made by the system's ssh")

        monkeypatch.setattr(Link, "run", refuse)
        assert host.send(large, "in/large") > LARGE_BYTES
        assert host.send(large, "in/large") == 0
        host.get("in/large", large.with_name("back"))
        assert same(large, large.with_name("back"))

    def test_without_a_client_they_are_moved_all_the_same(
        self, host: SSHHost, large: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(large))
        assert host.send(large, "in/large") > LARGE_BYTES
        host.get("in/large", large.with_name("back"))
        assert same(large, large.with_name("back"))

    def test_it_takes_no_other_host_key_and_leaves_no_process(
        self, one: Rack, tmp_path: Path
    ) -> None:
        login = login_of(one, one.machines[0])
        assert openssh.run(login, "echo here", limit_s=LIMIT_S).out == "here\n"
        other = replace(login, host_keys=(make_key(tmp_path / "other"),))
        with pytest.raises(openssh.Unusable, match=r"(?i)verification failed"):
            openssh.run(other, "echo here", limit_s=LIMIT_S)
        with pytest.raises(openssh.Unusable):
            openssh.run(replace(login, host_keys=()), "echo here", limit_s=LIMIT_S)

    def test_a_connection_that_breaks_is_made_again(
        self, one: Rack, host: SSHHost, large: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The transfer by ssh loses its sshd half-way; what arrives is whole all the same."""
        host.facts()
        pack, machine = trees.pack, one.machines[0]
        cut: list[int] = []

        def pack_and_cut(path: Path, write: Callable[[bytes], object]) -> None:
            def on(data: bytes) -> None:
                write(data)
                if not cut:
                    cut.append(1)
                    machine.stop()
                    machine.start()

            pack(path, on)

        monkeypatch.setattr(trees, "pack", pack_and_cut)
        assert host.send(large, "in/large") > LARGE_BYTES
        host.get("in/large", large.with_name("back"))
        assert cut and same(large, large.with_name("back"))


def test_a_second_push_of_the_same_content_moves_none_by_the_links_own_count(
    linked: tuple[Rack, Net], large: Path, record_property: Callable[[str, object], None]
) -> None:
    """Counted on a link that carries nothing else. What is sent the second time is the question;
    a file that changed and kept its size and time is sent again."""
    rack, net = linked
    machine = rack.machines[0]
    host = ssh_host(login_of(rack, machine), base=str(machine.work), fleet_id="test")
    sent = []

    def push() -> int:
        before, began = net.sent_to(0), time.monotonic()
        moved = host.send(large, "in/large")
        sent.append(net.sent_to(0) - before)
        record_property(
            "said", f"push moved {moved} bytes, {sent[-1]} on the link, "
            f"{time.monotonic() - began:.2f} s",
        )  # fmt: skip
        return moved

    try:
        host.facts()
        assert push() > LARGE_BYTES
        assert push() == 0
        there = machine.work / "runs/test/hosts/host-0/in/large/weights"
        seen = there.stat()
        with open(there, "r+b") as file:
            file.write(bytes(8))
        os.utime(there, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        assert push() > LARGE_BYTES
        assert there.read_bytes() == (large / "weights").read_bytes()
    finally:
        host.link.hang_up()
        host.link.drop()
    assert sent[0] > LARGE_BYTES and sent[2] > LARGE_BYTES
    assert sent[1] < 64 * 1024, "a question and its answer"
