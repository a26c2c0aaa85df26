"""Notices: each once, also after a kill; one that fails or hangs stops nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harness.clock import Clock
from harness.journal import Journal
from harness.notices import NEAR_S, Notices

SECRET = "T0K3N-b5f1"


class Hook(BaseHTTPRequestHandler):
    """Keeps what is posted; a path that ends in /hang is answered when the test ends."""

    got: ClassVar[list[Any]] = []
    ends: ClassVar[threading.Event]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Hook.got.append(json.loads(body))
        if self.path.endswith("/hang"):
            Hook.ends.wait(60)
        self.send_response(500 if self.path.endswith("/wrong") else 204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def hook() -> Iterator[str]:
    Hook.got, Hook.ends = [], threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/{SECRET}"
    Hook.ends.set()
    server.shutdown()
    server.server_close()


def notices(folder: Path, target: str, said: list[str], limit_s: float = 20.0) -> Notices:
    journal = Journal(folder / "journal.jsonl", Clock())
    return Notices(target, "run-1", said.append, journal, limit_s)


def test_a_web_hook_is_told_once_and_its_address_stands_nowhere(tmp_path: Path, hook: str) -> None:
    for _ in range(2):
        said: list[str] = []
        told = notices(tmp_path, hook, said)
        told.tell("arm ended", "the arm 'a' ended", about="a")
        told.tell("arm ended", "the arm 'b' ended", about="b")
        told.tell("arm ended", "the arm 'a' ended, said again", about="a")
        told.close()
        told.journal.close()
        assert said == []
    assert sorted(each["text"] for each in Hook.got) == ["the arm 'a' ended", "the arm 'b' ended"]
    assert {each["run"] for each in Hook.got} == {"run-1"}
    assert SECRET not in (tmp_path / "journal.jsonl").read_text()


def test_what_a_killed_process_told_is_not_told_again(tmp_path: Path) -> None:
    given = tmp_path / "given"
    code = (
        "import os, sys, time; from pathlib import Path\n"
        "from harness.clock import Clock; from harness.journal import Journal\n"
        "from harness.notices import Notices\n"
        "folder, given = Path(sys.argv[1]), Path(sys.argv[2])\n"
        "journal = Journal(folder / 'journal.jsonl', Clock())\n"
        "Notices(f'tee -a {given}', 'run-1', print, journal).tell('failure', 'it broke')\n"
        "while not (given.exists() and given.read_text().endswith('\\n')): time.sleep(0.02)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(given)], check=False, timeout=120
    )
    assert done.returncode == -signal.SIGKILL
    again = notices(tmp_path, f"tee -a {given}", [])
    again.tell("failure", "it broke")
    again.tell("failure", "it broke in another way")
    again.close()
    again.journal.close()
    texts = [json.loads(line)["text"] for line in given.read_text().splitlines()]
    assert texts == ["it broke", "it broke in another way"]


@pytest.mark.parametrize(
    "target",
    ["false {}", "no-such-command-{}", "'unbalanced {}", "http://127.0.0.1:1/{}", "http://[{}"],
)
def test_one_that_fails_is_said_without_its_target(tmp_path: Path, target: str) -> None:
    said: list[str] = []
    told = notices(tmp_path, target.format(SECRET), said)
    told.tell("failure", "it broke")
    told.close()
    told.journal.close()
    assert len(said) == 1
    assert "the notice 'failure' could not be given" in said[0]
    assert SECRET not in said[0] + (tmp_path / "journal.jsonl").read_text()


@pytest.mark.parametrize("kind", ["command", "hook"])
def test_one_that_hangs_is_left_alone(tmp_path: Path, hook: str, kind: str) -> None:
    said: list[str] = []
    target = "sleep 600" if kind == "command" else f"{hook}/hang"
    told = notices(tmp_path, target, said, limit_s=1.0)
    told.tell("failure", "it broke")
    told.journal.note("the study", {"goes": "on"})
    told.close()
    told.journal.close()
    assert said, "it is said"


def test_a_refusal_of_the_hook_is_said(tmp_path: Path, hook: str) -> None:
    said: list[str] = []
    told = notices(tmp_path, f"{hook}/wrong", said)
    told.tell("failure", "it broke")
    told.close()
    told.journal.close()
    assert said == ["the notice 'failure' could not be given (HTTPError)"]


def test_the_deadline_is_told_of_once_thirty_minutes_before(tmp_path: Path, hook: str) -> None:
    for left_s in (NEAR_S + 0.2, NEAR_S - 60, 30.0):
        told = notices(tmp_path, hook, [])
        told.watch_deadline(left_s, "2026-11-30T12:00:00.000000Z")
        told.watch_deadline(left_s, "2026-11-30T12:00:00.000000Z")
        ends = time.monotonic() + 60
        while not Hook.got and time.monotonic() < ends:
            time.sleep(0.02)
        told.close()
        told.journal.close()
    assert [each["event"] for each in Hook.got] == ["deadline near"]


def test_far_from_the_deadline_and_after_it_nothing_is_told(tmp_path: Path, hook: str) -> None:
    for left_s in (NEAR_S + 3600, 0.0, -5.0):
        told = notices(tmp_path, hook, [])
        told.watch_deadline(left_s, "2026-11-30T12:00:00.000000Z")
        told.close()
        told.journal.close()
    assert Hook.got == []


def test_without_a_target_nothing_is_kept(tmp_path: Path) -> None:
    told = notices(tmp_path, "", [])
    told.tell("failure", "it broke")
    told.close()
    told.journal.close()
    assert (tmp_path / "journal.jsonl").read_bytes() == b""
