"""A clock whose waits move the cloud's own clock on instead of taking time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from harness.clock import Clock
from harness.cloud.clients import Aws
from tests.engine.moto.server import REGION, MotoCloud


class Waits:
    """Counts what was waited."""

    def __init__(self, cloud: MotoCloud) -> None:
        self.total = 0.0
        self._cloud = cloud
        self._start = datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        self.total += seconds
        self._cloud.advance(seconds)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.total)

    @property
    def clock(self) -> Clock:
        return Clock(now=self.now, monotonic=lambda: self.total, sleep=self.sleep)


def aws_of(cloud: MotoCloud, region: str = REGION) -> tuple[Aws, Waits]:
    """The operator's side of a cloud, with the waits that it makes.

    Its clients are shared by all tests of a process: to make one takes longer than most tests.
    """
    waits = Waits(cloud)
    if (cloud.endpoint, region) not in _SHARED:
        _SHARED[cloud.endpoint, region] = Aws(region, session=cloud.session)
    aws = _SHARED[cloud.endpoint, region]
    aws.clock = waits.clock
    return aws, waits


_SHARED: dict[tuple[str, str], Aws] = {}
