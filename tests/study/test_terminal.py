"""What a person sees, in a pseudo-terminal of 80 columns."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pexpect
import pyte

from tests.study.conftest import MakeDesk
from tests.toy_plan import toy_with


def test_progress_then_a_short_table_within_80_columns(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(trainer=toy_with(tmp_path, TOY_UPDATE_SECONDS="1"))
    screen = pyte.HistoryScreen(80, 50, history=2000)
    stream = pyte.Stream(screen)
    child = pexpect.spawn(
        sys.executable,
        ["-m", "harness", "run", str(desk.plan), "--local"],
        cwd=str(desk.folder), env={**desk.environment(), "TERM": "xterm"},
        dimensions=(50, 80), encoding="utf-8", timeout=120,
    )  # fmt: skip
    seen: list[str] = []
    while True:
        try:
            text = child.read_nonblocking(4096, timeout=60)
        except pexpect.EOF:
            break
        stream.feed(text)
        seen += screen.display
    child.close()
    assert child.exitstatus == 0, "\n".join(screen.display)

    going = "\n".join(seen)
    assert "train single" in going
    assert re.search(r"update [1-4]/4", going), going
    assert "tok/s" in going
    assert re.search(r"deadline in about \d+ \w+, at least \$1.00 of the ceiling \$1 left", going)
    last = "\n".join(line.rstrip() for line in screen.display)
    for wanted in ("Accuracy", "lookup", "pair-gains", "PASS", "ranks-agree", "cost: at most"):
        assert wanted in last, last
    assert "report: runs/toy/" in last
    status = desk.harness("status")
    assert status.code == 0
    assert "report" in status.out
    assert max(map(len, status.out.splitlines())) <= 80
