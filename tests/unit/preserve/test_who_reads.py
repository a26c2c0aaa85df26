"""Who may read everything back: hosts of a stack, while they stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from harness.clock import Clock, utc_text
from harness.receipts import ProvisionReceipt, PushReceipt
from harness.stages.preserve import standing_hosts

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Host(SimpleNamespace):
    def with_helper(self, folder: str) -> Host:
        return self


def asked(
    *, kind: str = "stack", pushed: int = 2, left_s: float = 600, lost: tuple[str, ...] = ()
) -> list[str]:
    """Names of the hosts that may read; the fleet is only asked for them before its deadline."""

    def hosts() -> tuple[Host, ...]:
        assert left_s > 0, "hosts that have ended are not asked for"
        return (Host(name="host-0"), Host(name="host-1"))

    fleet = SimpleNamespace(deadline_utc=utc_text(NOON + timedelta(seconds=left_s)), hosts=hosts)
    study: Any = SimpleNamespace(
        fleet_kind=kind,
        clock=Clock(now=lambda: NOON),
        fleet=lambda _: fleet,
        lost=lambda: dict.fromkeys(lost, "gone"),
    )
    kept = PushReceipt.model_construct(
        hosts=tuple(SimpleNamespace(source_sha256="0" * 64) for _ in range(pushed))
    )
    done: Any = SimpleNamespace(
        find=lambda wanted: kept if wanted is PushReceipt else None,
        of=lambda wanted: kept if wanted is PushReceipt else ProvisionReceipt.model_construct(),
    )
    return [each.name for each in standing_hosts(study, done)]


def test_hosts_of_a_stack_read_while_they_stand() -> None:
    assert asked() == ["host-0", "host-1"]
    assert asked(lost=("host-1",)) == ["host-0"]


@pytest.mark.parametrize(
    "case", [{"left_s": 0.0}, {"left_s": -3600.0}, {"pushed": 0}, {"kind": "hosts-file"}]
)
def test_else_a_process_on_this_computer_reads(case: dict[str, Any]) -> None:
    assert asked(**case) == []
