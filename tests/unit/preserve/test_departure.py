"""When leaving is due, from measured transfers; what is kept of losses that were cut off."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.clock import Clock, utc_text
from harness.departure import Departure, rates_of
from harness.journal import Journal
from harness.leaving import PACES, Pace, slowest
from harness.staging import MOVED
from harness.unfinished import whole_lines

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_it_is_due_from_its_moment_on_and_says_both_times() -> None:
    deadline = utc_text(NOON + timedelta(minutes=10))
    before = Departure(Clock(now=lambda: NOON - timedelta(seconds=1)), NOON, deadline)
    assert before.due() is None
    due = Departure(Clock(now=lambda: NOON), NOON, deadline).due()
    assert due is not None
    assert due.because == "deadline"
    assert utc_text(NOON) in due.why
    assert deadline in due.why


def test_the_slowest_transfer_in_the_journal_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", Clock())
    pace = PACES["stack"]
    assert slowest(rates_of(journal.entries), pace.bytes_per_s) == pace.bytes_per_s
    for size, seconds in ((10**9, 10.0), (10**9, 100.0), (1000, 10.0)):
        journal.note(MOVED, {"host": "host-0", "bytes": size, "seconds": seconds})
    journal.note("torn-line", {"cut_at_byte": 1})
    assert slowest(rates_of(journal.entries), pace.bytes_per_s) == 1e7
    journal.close()


def test_hosts_that_end_at_the_deadline_are_left_first() -> None:
    assert PACES["stack"] == Pace()
    others = [pace for kind, pace in PACES.items() if kind != "stack"]
    assert all(pace.fixed_s < Pace().fixed_s for pace in others)


def test_losses_are_kept_up_to_the_first_line_that_is_not_whole(tmp_path: Path) -> None:
    losses = tmp_path / "losses-0.jsonl"
    whole = b'{"loss":1.5,"update":1}\n{"loss":1.25,"update":2}\n'
    for rest in (b"", b'{"loss":1.0,"upd', b'{"loss":1.0,"upd\n{"loss":1,"update":4}\n', b"\n\n"):
        losses.write_bytes(whole + rest)
        assert whole_lines(losses) == whole
    losses.write_bytes(b"\xff\x00")
    assert whole_lines(losses) == b""
