"""Heartbeats of a job's ranks: shown to a person, and missed when they stop.

A trainer writes them, so nothing in them is believed: a beat counts as new when its bytes change,
by our own clock; its time is looked at only to find one that was old already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.clock import Clock, parse_utc
from harness.hosts.protocol import Host, JobState, Unreachable
from trainer import contract

START_LIMIT_S = 900.0
"""No heartbeat for this long after the start counts as stalled (model load, compilation)."""
STALL_LIMIT_S = 180.0
"""A heartbeat older than this counts as stalled; the contract asks for one every 30 s."""
LARGEST = 1 << 53


@dataclass(frozen=True)
class Beat:
    """What is used of heartbeat-R.json."""

    time: str
    phase: str
    done: int
    of: int
    loss: float | None
    rate: float | None


@dataclass
class Pulse:
    """When each rank's heartbeat last changed, seen from here."""

    clock: Clock
    out: str
    _seen: dict[int, tuple[Beat | None, float]] = field(default_factory=dict)

    def stalled(self, hosts: tuple[Host, ...], states: list[JobState]) -> list[str]:
        """A sentence for every running rank that has been silent for too long."""
        found = []
        for rank, (host, state) in enumerate(zip(hosts, states, strict=True)):
            if state.status != "running" or state.started_utc is None:
                continue
            beat = read_heartbeat(host, self.out, rank)
            age = max(self._unchanged(rank, beat), self._old(beat, state.started_utc))
            if age > (STALL_LIMIT_S if beat else START_LIMIT_S):
                found.append(f"{host.name}: no heartbeat for {age:.0f} s")
        return found

    def _unchanged(self, rank: int, beat: Beat | None) -> float:
        now = self.clock.monotonic()
        if rank not in self._seen or self._seen[rank][0] != beat:
            self._seen[rank] = (beat, now)
        return now - self._seen[rank][1]

    def _old(self, beat: Beat | None, started_utc: str) -> float:
        """Seconds since the beat by its own time; less than nothing when it is in the future."""
        try:
            moment = parse_utc(beat.time if beat else started_utc)
        except ValueError:
            return 0.0
        return (self.clock.now() - moment).total_seconds()


def read_heartbeat(host: Host, out: str, rank: int) -> Beat | None:
    """The newest heartbeat of a rank; null when there is none that can be read."""
    try:
        data = host.read(f"{out}/heartbeat-{rank}.json", limit=65536, patient=False)
        beat = contract.parse(data) if data else None
    except (OSError, contract.ContractError, Unreachable):
        return None
    if not isinstance(beat, dict) or not isinstance(beat.get("time"), str):
        return None
    return Beat(
        time=beat["time"],
        phase=str(beat.get("phase", ""))[:80],
        done=_count(beat.get("done")),
        of=_count(beat.get("of")),
        loss=_number(beat.get("loss")),
        rate=_number(beat.get("tokens_per_s")),
    )


def _count(value: Any) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < LARGEST else 0


def _number(value: Any) -> float | None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and abs(value) < LARGEST else None
