"""One host over real sshd: keys, silence, floods, broken connections, transfers, detached jobs."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.clock import utc_text
from harness.errors import BadInput, Refused, Waiting
from harness.hosts import openssh
from harness.hosts.connection import Connected, Login
from harness.hosts.link import Link
from harness.hosts.openssh import LARGE_BYTES
from harness.hosts.protocol import Job, Unreachable
from harness.hosts.ssh import SSHHost, ssh_host
from harness.onhost import trees
from tests.ssh.conftest import MakeRack, Rack
from tests.ssh.machines import Machine, kill, make_key

LIMIT_S = 60.0


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


def job(*argv: str, name: str = "work", seconds: float = 300) -> Job:
    ends = utc_text(datetime.now(UTC) + timedelta(seconds=seconds))
    return Job(id=name, argv=argv, folder=f"jobs/{name}", environment={}, ends_by_utc=ends)


def wait_until(true: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    ends = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.05)


def exited(host: SSHHost, name: str = "work") -> Callable[[], bool]:
    return lambda: host.state(name).status == "exited"


def try_login(login: Login) -> None:
    connected = Connected(login)
    try:
        connected.open()
    finally:
        connected.drop()


class TestKeys:
    def test_no_pinned_key_is_refused_with_how_to_get_and_check_one(self, one: Rack) -> None:
        with pytest.raises(Refused) as refused:
            try_login(replace(login_of(one, one.machines[0]), host_keys=()))
        assert "ssh-keyscan" in refused.value.next_command
        assert "console" in refused.value.what

    def test_a_changed_key_is_refused_at_once(self, one: Rack, tmp_path: Path) -> None:
        other = make_key(tmp_path / "other")
        began = time.monotonic()
        with pytest.raises(Refused, match="another host key"):
            try_login(replace(login_of(one, one.machines[0]), host_keys=(other,)))
        assert time.monotonic() - began < LIMIT_S, "it is not tried again and again"

    def test_a_key_of_another_type_is_refused(self, one: Rack, tmp_path: Path) -> None:
        file = tmp_path / "rsa"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-C", "x", "-f", str(file)], check=True
        )
        other = " ".join(file.with_suffix(".pub").read_text().split()[:2])
        with pytest.raises(Refused):
            try_login(replace(login_of(one, one.machines[0]), host_keys=(other,)))

    def test_a_refused_login_key_is_said_with_the_command_that_shows_why(
        self, one: Rack, tmp_path: Path
    ) -> None:
        make_key(tmp_path / "stranger")
        with pytest.raises(Waiting, match="refuses the login key") as refused:
            try_login(replace(login_of(one, one.machines[0]), key_file=str(tmp_path / "stranger")))
        assert refused.value.next_command.startswith("ssh -v")

    def test_what_is_no_key_is_bad_input(self, one: Rack) -> None:
        with pytest.raises(BadInput, match="no public host key"):
            try_login(replace(login_of(one, one.machines[0]), host_keys=("ssh-ed25519 hello",)))


class TestReach:
    def test_a_late_banner_is_waited_for(self, one: Rack) -> None:
        machine = one.machines[0]
        with SlowFront(machine, seconds=4.0) as port:
            login = replace(login_of(one, machine), port=port)
            try_login(login)

    def test_nobody_there_is_said_after_the_patience(self, one: Rack) -> None:
        machine = one.machines[0]
        machine.stop()
        with pytest.raises(Unreachable, match="cannot be reached for"):
            try_login(login_of(one, machine, patience_s=1.0))

    def test_a_machine_that_comes_back_is_found_again(self, one: Rack, host: SSHHost) -> None:
        machine = one.machines[0]
        assert host.facts().name == "host-0"
        machine.stop()
        later = threading.Timer(2.0, machine.start)
        later.start()
        assert host.facts().name == "host-0"
        later.join()

    def test_a_session_that_is_stopped_is_given_up_and_made_again(
        self, one: Rack, host: SSHHost
    ) -> None:
        host.facts()
        for pid in one.machines[0].sessions():
            kill(pid, signal.SIGSTOP)
        assert host.facts().name == "host-0", "the stopped session never answers; a new one does"

    def test_another_boot_is_seen(self, one: Rack, host: SSHHost) -> None:
        """The boot id is read from a stand-in file: this test cannot reboot a machine."""
        before = host.facts().boot_id
        (one.machines[0].folder / "boot_id").write_text("22222222-2222-2222-2222-222222222222\n")
        assert host.facts().boot_id != before


class TestCommands:
    def test_standard_input_is_closed(self, host: SSHHost) -> None:
        done = host.run(["cat"], timeout_s=30)
        assert (done.exit_code, done.stdout) == (0, "")

    def test_a_silent_command_is_ended_on_the_machine_at_its_limit(self, host: SSHHost) -> None:
        with pytest.raises(Waiting, match="was ended after 2 s"):
            host.run(["sleep", "86399"], timeout_s=2)
        assert b"86399" not in subprocess.run(
            ["ps", "-eo", "args"], capture_output=True, check=True
        ).stdout.replace(b"timeout", b"")  # fmt: skip

    def test_odd_words_arrive_as_they_are(self, host: SSHHost) -> None:
        words = ["a b", "'", '"', "$HOME", "`id`", "\\", "*", "ä"]
        done = host.run(["printf", "%s\\n", *words], timeout_s=30)
        assert done.stdout.splitlines() == words

    def test_a_flood_of_output_is_read_in_flat_memory(self, host: SSHHost) -> None:
        host.facts()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        done = host.run(["sh", "-c", "yes 0123456789abcdef | head -c 204000000"], timeout_s=300)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert done.stdout.endswith("0123456789abcdef\n")
        assert grown < 64 * 1024, f"{grown} KiB more for 200 MB of output"


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


class TestJobs:
    def test_a_job_goes_on_when_sshd_dies_and_is_found_again(
        self, one: Rack, host: SSHHost
    ) -> None:
        host.start(job("sh", "-c", "echo begun; sleep 6; echo ended"))
        one.machines[0].stop()
        with pytest.raises(Unreachable):
            host.state("work")
        one.machines[0].start()
        wait_until(exited_patiently(host))
        state = host.state("work")
        assert (state.exit_code, state.reason) == (0, None)
        assert host.read("jobs/work/log") == b"begun\nended\n"
        assert host.read("jobs/work/log", offset=6) == b"ended\n"

    def test_two_gigabytes_of_log_stay_on_the_machine_and_are_read_by_offset(
        self, host: SSHHost
    ) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        host.start(job("sh", "-c", "head -c 2000000000 /dev/zero; echo the end"))
        wait_until(exited(host), 300)
        size = host.state("work").log_bytes
        assert size == 2_000_000_008
        assert host.read("jobs/work/log", offset=size - 8) == b"the end\n"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024

    def test_a_job_starts_once_and_its_input_is_closed(self, host: SSHHost) -> None:
        one = job("sh", "-c", "cat; echo once")
        host.start(one)
        host.start(one)
        wait_until(exited(host))
        assert host.read("jobs/work/log") == b"once\n"

    def test_stop_ends_the_whole_tree(self, host: SSHHost) -> None:
        host.start(job("sh", "-c", "sleep 86398 & sleep 86398"))
        state = host.stop("work", reason="the test says so")
        assert state.reason == "the test says so"
        shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
        assert b"86398" not in shown


def exited_patiently(host: SSHHost) -> Callable[[], bool]:
    def look() -> bool:
        try:
            return host.state("work").status == "exited"
        except Unreachable:
            return False

    return look


class SlowFront:
    """A port in front of a machine that says nothing for some seconds, then passes all on."""

    def __init__(self, machine: Machine, *, seconds: float) -> None:
        self._machine, self._seconds = machine, seconds
        self._server = socket.create_server((machine.address, 0))

    def __enter__(self) -> int:
        threading.Thread(target=self._serve, daemon=True).start()
        return int(self._server.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _serve(self) -> None:
        client, _ = self._server.accept()
        time.sleep(self._seconds)
        inner = socket.create_connection((self._machine.address, self._machine.port))
        for source, sink in ((client, inner), (inner, client)):
            threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(65536):
                sink.sendall(piece)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()
