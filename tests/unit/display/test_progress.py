"""Progress: plain lines now and then, JSON lines always, live lines that fit the terminal."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from rich.cells import cell_len

from harness.display.progress import Estimates, JsonProgress, item_line, make_progress

HOSTILE = "ev\x1b]0;owned\x07il \u202e \x1b[2J\x9b2J \ud800 \u4e2d\u6587\u2026"
SCRIPT = f"""
import sys, time
from harness.display.progress import make_progress
HOSTILE = {HOSTILE!a}
progress = make_progress(sys.stdout)
progress.stage("train", "two arms, " + "a long detail " * 12)
for update in range(1, 9):
    text = f"update {{update}}/16  loss 1.234  {{HOSTILE}}" + " and a tail" * 12
    progress.item("train single", text, done=update, of=16, rate=101.2, unit="tok/s")
    time.sleep(0.06)
progress.item("short", "update 1/1", done=1, of=1)
progress.note("a note " * 30)
progress.note(HOSTILE * 4)
progress.done("train", 58.02)
progress.stage("select")
progress.close()
progress.close()
"""


class _Time:
    """A clock that stands still until told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_left_comes_from_the_items_own_pace() -> None:
    time = _Time()
    estimates = Estimates(time)
    assert estimates.left("train", 3, 16) is None
    time.now += 10
    assert estimates.left("train", 5, 16) == pytest.approx(55)
    assert estimates.left("train", 5, None) is None
    assert estimates.left("train", 16, 16) is None
    assert estimates.left("train", 1, 16) is None, "a second attempt starts anew"


def test_an_item_line_reads_as_a_sentence() -> None:
    line = item_line("train single", "update 7/16  loss 1.234", 101.2, "tok/s", 119.0)
    assert line == "train single  update 7/16  loss 1.234  101 tok/s  about 2 min left"


def test_plain_output_prints_an_item_at_most_every_ten_seconds() -> None:
    time, out = _Time(), io.StringIO()
    progress = make_progress(out, monotonic=time)
    progress.stage("train", "single, pair")
    for update in range(1, 17):
        progress.item("train single", f"update {update}/16", done=update, of=16)
        progress.item("train pair", f"update {update}/16", done=update, of=17)
        time.now += 4
    progress.done("train", 64.0)
    progress.close()
    lines = out.getvalue().splitlines()
    assert lines[0] == "train: single, pair"
    assert lines[-1] == "train: done in 64.00 s"
    singles = [line for line in lines if line.startswith("  train single")]
    numbers = re.findall(r"train single  update (\d+)/", out.getvalue())
    assert numbers == ["1", "4", "7", "10", "13", "16"]
    assert singles[1].endswith("about 48 s left")
    assert "\x1b" not in out.getvalue()


def test_json_lines_carry_everything() -> None:
    out = io.StringIO()
    progress = JsonProgress(out)
    progress.stage("train", "caf\u00e9 \ud800")
    progress.item("k", "t", done=1, of=2, rate=3.5, unit="tok/s")
    progress.note("n")
    progress.done("train", 1.5)
    progress.close()
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert out.getvalue().isascii()
    assert [row["event"] for row in rows] == ["stage", "item", "note", "done"]
    assert rows[1] == {
        "event": "item", "key": "k", "text": "t", "done": 1, "of": 2, "rate": 3.5, "unit": "tok/s",
    }  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_live_lines_fit_a_real_terminal_of_80_columns(encoding: str) -> None:
    raw = in_terminal(SCRIPT, encoding)
    text = raw.decode(encoding)
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    lines = re.split(r"[\r\n]+", plain)
    assert max(cell_len(line) for line in lines) <= 80
    assert any("train single  update" in line for line in lines)
    assert any("done in 58.02 s" in line for line in lines)
    assert any("short  update 1/1" in line for line in lines)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_a_pipe_gets_plain_lines_in_its_encoding(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    text = done.stdout.decode(encoding)
    assert "\x1b" not in text
    assert "done in 58.02 s" in text


def in_terminal(program: str, encoding: str) -> bytes:
    """What a Python program writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment |= {"TERM": "xterm-256color", "PYTHONIOENCODING": encoding}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    found = bytearray()
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        found += piece
    os.close(ours)
    assert process.wait(60) == 0, found.decode(errors="replace")
    return bytes(found)
