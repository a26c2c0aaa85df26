"""Heartbeats are a trainer's words: nothing in them can stop the operator or fool it for ever."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from harness.clock import Clock, utc_text
from harness.heartbeats import STALL_LIMIT_S, START_LIMIT_S, Pulse, read_heartbeat
from harness.hosts.protocol import Host, JobState

BEGAN = datetime(2026, 11, 29, tzinfo=UTC)


@dataclass
class OneFile:
    """As much of a host as heartbeats need."""

    data: bytes = b""
    name: str = "host-0"

    def read(
        self, path: str, *, offset: int = 0, limit: int = 1 << 20, patient: bool = True
    ) -> bytes:
        return self.data


def host_with(data: bytes = b"") -> Host:
    return cast(Host, OneFile(data))


@dataclass
class Time:
    passed: float = 0.0
    clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = Clock(
            now=lambda: BEGAN + timedelta(seconds=self.passed), monotonic=lambda: self.passed
        )


def beat(**fields: Any) -> bytes:
    whole = {"phase": "train", "done": 1, "of": 4, "time": utc_text(BEGAN), "loss": 1.0}
    return json.dumps({**whole, "tokens_per_s": 2.0, **fields}).encode()


RUNNING = [JobState(id="j", status="running", started_utc=utc_text(BEGAN), log_bytes=0)]


def stalled_at(host: Host, *moments: float) -> bool:
    time = Time()
    pulse = Pulse(time.clock, "out")
    found: list[str] = []
    for moment in moments:
        time.passed = moment
        found = pulse.stalled((host,), RUNNING)
    return bool(found)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff", b"[]", b"7", b"{", beat(time=7), beat(time="yesterday"), beat(done="x", of=[]),
        beat(done=-1, of=True), beat(done=10**40), beat(loss="low", tokens_per_s={}),
        b'{"time":"' + b"x" * 70000,
    ],
)  # fmt: skip
def test_nonsense_in_a_heartbeat_is_no_error(data: bytes) -> None:
    seen = read_heartbeat(host_with(data), "out", 0)
    assert seen is None or (seen.done >= 0 and seen.of >= 0)
    assert not stalled_at(host_with(data), 1.0)


def test_a_beat_from_the_future_does_not_hide_a_stall() -> None:
    host = host_with(beat(time="2099-01-01T00:00:00.000000Z"))
    assert not stalled_at(host, 0.0, STALL_LIMIT_S - 1)
    assert stalled_at(host, 0.0, STALL_LIMIT_S + 1)


def test_an_old_beat_is_a_stall_also_for_an_operator_that_comes_back() -> None:
    assert stalled_at(host_with(beat()), STALL_LIMIT_S + 1)


def test_without_a_beat_the_start_may_take_longer() -> None:
    assert not stalled_at(host_with(), 0.0, START_LIMIT_S - 1)
    assert stalled_at(host_with(), 0.0, START_LIMIT_S + 1)
