"""The operator's address and the fleet's login key."""

from __future__ import annotations

import http.server
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from harness.errors import BadInput, Waiting
from harness.launch.operator import make_login_key, operator_cidr


@pytest.fixture
def checkip() -> Iterator[str]:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"198.51.100.7\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def test_auto_asks(checkip: str) -> None:
    assert operator_cidr("auto", checkip=checkip) == "198.51.100.7/32"


def test_a_single_address_becomes_a_network_of_one() -> None:
    assert operator_cidr("203.0.113.9") == "203.0.113.9/32"


@pytest.mark.parametrize(
    "given", ["0.0.0.0/0", "10.0.0.0/8", "2001:db8::1", "203.0.113.9/24", "home", "", "1.2.3.4/33"]
)
def test_what_is_no_small_ipv4_network_is_refused(given: str) -> None:
    with pytest.raises(BadInput):
        operator_cidr(given)


def test_nobody_answers() -> None:
    with pytest.raises(Waiting, match="could not be asked"):
        operator_cidr("auto", checkip="http://127.0.0.1:1/")


def test_the_login_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "login_key"
    first = make_login_key(path, "fleet-1")
    assert make_login_key(path, "fleet-1") == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = paramiko.Ed25519Key.from_private_key_file(str(path))
    assert first == f"ssh-ed25519 {key.get_base64()} fleet-1"
    assert [each.name for each in tmp_path.iterdir()] == ["login_key"]
