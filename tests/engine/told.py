"""An admitted fleet and a wiring whose answers a test sets and whose calls it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from harness.clock import utc_text
from harness.fleet.admitted import AdmittedFleet
from harness.fleet.tags import ATTEMPT, FLEET
from infra.program import stand_up
from infra.wiring import Wiring
from tests.unit.infra import fleet

LOGIN = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN/0XabQXGBjrdS6FuxpCL4nhT7hxBpLcx7ZP1yJfdnP"


def admitted(**changes: Any) -> AdmittedFleet:
    """The pair of the program's unit tests, admitted for six hours from now."""
    fields: dict[str, Any] = {
        "deadline_utc": utc_text(datetime.now(UTC) + timedelta(hours=6)),
        "login_public_key": LOGIN,
        "bucket": "harness-pair-123456789012",
    }
    return fleet.admitted(**{**fields, **changes})


def changed(before: AdmittedFleet, **changes: Any) -> AdmittedFleet:
    """The same admission with other fields."""
    return before.model_copy(update=changes)


@dataclass
class Told:
    """Plays the operator's side."""

    fleet: AdmittedFleet
    ec2: Any
    """Client with which failed placements are ended."""
    is_preserved: bool = False
    refuse: Callable[[], None] = lambda: None
    calls: list[str] = field(default_factory=list)

    def program(self) -> None:
        """What the engine runs."""
        stand_up(
            Wiring(
                admitted=self.fleet,
                require_admission=self._admission,
                before_host=lambda slot: self.calls.append(f"before {slot}"),
                after_host=lambda slot, known: self.calls.append(f"after {slot} {known}"),
                on_failure=self._end,
                preserved=lambda: self.is_preserved,
            )
        )

    def _admission(self) -> None:
        self.calls.append("admission")
        self.refuse()

    def _end(self, why: str) -> None:
        """Ends by tag what this placement launched."""
        self.calls.append(f"failure {why}")
        attempt = f"{self.fleet.attempt}.{self.fleet.chosen}"
        wanted = [
            {"Name": f"tag:{FLEET}", "Values": [self.fleet.fleet]},
            {"Name": f"tag:{ATTEMPT}", "Values": [attempt]},
        ]
        for page in self.ec2.get_paginator("describe_instances").paginate(Filters=wanted):
            for reservation in page["Reservations"]:
                for one in reservation["Instances"]:
                    self.ec2.terminate_instances(InstanceIds=[one["InstanceId"]])
