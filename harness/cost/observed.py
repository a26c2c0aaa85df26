"""What was observed of a fleet, as far as money goes: moments, sizes, bytes. Nothing is guessed.

An interval begins at AWS's own time or at our time before the call, whichever is earlier, and ends
when AWS was seen to say that the thing is gone. What is not gone has no end.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from pydantic import model_validator

from harness.clock import parse_utc
from harness.plan.hosts import InstanceType, Region
from harness.plan.kinds import Count, CountOrZero, Text
from harness.strict import Model


class Held(Model):
    """A thing with a life. Times are `clock.utc_text`."""

    id: Text
    from_utc: Text
    until_utc: Text | None = None
    """When AWS was first seen to say that it is gone; None: it is still there."""

    @model_validator(mode="after")
    def _in_order(self) -> Held:
        if self.until_utc is not None and parse_utc(self.until_utc) < parse_utc(self.from_utc):
            raise ValueError(f"{self.id} ends before it begins")
        return self

    def seconds(self, still_there_until: datetime) -> Decimal:
        """Length of its life, exact to the microsecond; one that is there lives until then."""
        end = parse_utc(self.until_utc) if self.until_utc else still_there_until
        return max(exact_seconds(end - parse_utc(self.from_utc)), Decimal(0))


class HostLife(Held):
    """One host of one attempt, failed attempts too."""

    slot: CountOrZero | None = None
    """None: a host that nobody recorded, found by tag."""
    attempt: str = ""
    type: InstanceType
    zone: str = ""
    public_address: bool = True
    sent_bytes: CountOrZero | None = None
    """Whole-host counter; None: not measured, so the plan's cap counts."""
    received_bytes: CountOrZero | None = None


class VolumeLife(Held):
    """One gp3 volume."""

    gib: Count
    iops: CountOrZero
    throughput_mbps: CountOrZero


class Stored(Model):
    """What lies in the bucket for the declared time, and the requests that put it there."""

    bytes: CountOrZero = 0
    days: CountOrZero = 0
    puts: CountOrZero = 0
    gets: CountOrZero = 0
    read_outside_bytes: CountOrZero = 0
    """Bytes of readback that left AWS."""


class Observed(Model):
    """Everything of one fleet."""

    region: Region
    at_utc: Text
    """When this was observed: an end that is not known is not before it."""
    deadline_utc: Text
    hosts: tuple[HostLife, ...]
    volumes: tuple[VolumeLife, ...]
    traffic_cap_bytes: CountOrZero
    """Of one host over its life, as the plan caps it."""
    stored: Stored = Stored()


def exact_seconds(length: timedelta) -> Decimal:
    """A duration as decimal seconds."""
    return Decimal(length // timedelta(microseconds=1)).scaleb(-6)
