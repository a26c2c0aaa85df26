"""What every receipt begins with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from harness.receipts import StageName
from harness.study import Study


class Common(TypedDict):
    """The fields of `harness.receipts.Receipt`, but for notes."""

    stage: StageName
    run: str
    plan_hash: str
    started_utc: str
    finished_utc: str
    seconds: float
    inputs: dict[str, str]


@dataclass(frozen=True)
class Stamp:
    """Made when a stage starts; `close` when its receipt is written."""

    study: Study
    stage: StageName
    started_utc: str
    started: float
    inputs: dict[str, str]

    def close(self) -> Common:
        """The common fields, with the time now as the end."""
        return Common(
            stage=self.stage,
            run=self.study.run,
            plan_hash=self.study.loaded.hash,
            started_utc=self.started_utc,
            finished_utc=self.study.clock.utc(),
            seconds=round(self.study.clock.monotonic() - self.started, 6),
            inputs=self.inputs,
        )
