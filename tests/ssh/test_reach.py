"""Reaching one machine over real sshd: keys, late banners, sessions that stop, boots, silence."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import BadInput, Refused, Waiting
from harness.hosts import link
from harness.hosts.connection import Connected, Login
from harness.hosts.protocol import Unreachable
from harness.hosts.ssh import SSHHost, ssh_host
from tests.ssh.conftest import LIMIT_S, Rack, login_of, wait_until
from tests.ssh.machines import Machine, below, command_line, kill, make_key


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

    def test_a_silent_hour_ends_no_command(
        self, host: SSHHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The clock is shortened: twelve times the limit of silence, as an hour is 180 times."""
        host.facts()
        monkeypatch.setattr(link, "SILENT_S", 0.5)
        done = host.run(["sh", "-c", "sleep 6; echo at last; exit 7"], timeout_s=300, check=False)
        assert (done.exit_code, done.stdout) == (7, "at last\n")

    def test_an_operator_who_was_silent_for_long_finds_the_helper_again(
        self, one: Rack, tmp_path: Path
    ) -> None:
        """The helper ends by itself when nobody asks (after a second here)."""
        machine = one.machines[0]
        python = tmp_path / "python"
        python.write_text(
            f'#!/bin/sh\ncase "$*" in *onhost.answer) set -- "$@" --silence 1;; esac\n'
            f'exec {sys.executable} "$@"\n'
        )
        python.chmod(0o755)
        login = replace(login_of(one, machine), python=str(python))
        host = ssh_host(login, base=str(machine.work), fleet_id="test")

        def helpers() -> list[int]:
            assert machine.process is not None
            return [p for p in below(machine.process.pid) if b"--silence" in command_line(p)]

        try:
            host.facts()
            (first,) = helpers()
            wait_until(lambda: first not in helpers())
            assert host.facts().name == "host-0"
            assert helpers() != [first]
        finally:
            host.link.hang_up()
            host.link.drop()

    def test_another_boot_is_seen(self, one: Rack, host: SSHHost) -> None:
        """The boot id is read from a stand-in file: this test cannot reboot a machine."""
        before = host.facts().boot_id
        (one.machines[0].folder / "boot_id").write_text("22222222-2222-2222-2222-222222222222\n")
        assert host.facts().boot_id != before


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
