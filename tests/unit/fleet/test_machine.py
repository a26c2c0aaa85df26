"""What a plan says of this computer is not meant for hosts of AWS."""

from __future__ import annotations

import pytest

from harness.errors import BadInput
from harness.hosts.protocol import HostFacts
from harness.machine import device_of, threads_of, transport_of
from harness.plan import Plan
from harness.receipts import ProvisionReceipt
from harness.strict import build
from tests.unit.launch.aws import aws_plan

PLAN = build(Plan, aws_plan(), where="plan")
"""It declares two workers on this computer, CPU and one thread each, and g6e hosts."""


def provisioned(kind: str, gpus: tuple[str, ...]) -> ProvisionReceipt:
    host = HostFacts(
        name="host-0", hostname="h", boot_id="b", python="3.12", cpus=8, memory_bytes=1,
        disk_free_bytes=1, gpus=gpus, clock_utc="x",
    )  # fmt: skip
    return ProvisionReceipt(
        stage="provision", run="r", plan_hash="a" * 64, started_utc="x", finished_utc="x",
        seconds=0.0, inputs={}, fleet_kind=kind, fleet="f", hosts=(host, host), deadlines=(),
        worst_case_usd="0", ceiling_usd="0",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "device", "threads"),
    [("local", "cpu", 1), ("hosts-file", "cpu", 1), ("stack", "cuda", 8)],
)
def test_a_plan_for_both_trains_on_gpus_where_it_pays_for_them(
    kind: str, device: str, threads: int
) -> None:
    fleet = provisioned(kind, ("NVIDIA L40S, 46068 MiB",))
    assert device_of(PLAN, fleet) == device
    assert threads_of(PLAN, fleet, 2) == threads


def test_hosts_of_aws_without_a_gpu_are_refused() -> None:
    with pytest.raises(BadInput, match=r"0 host\(s\) show a GPU"):
        device_of(PLAN, provisioned("stack", ()))


def two_workers_on_gpus(**more: object) -> Plan:
    value = aws_plan()
    value["hosts"]["local"] = {"count": 2, "device": "cuda", **more}
    return build(Plan, value, where="plan")


def test_one_gpu_for_two_workers_is_refused_with_what_would_do() -> None:
    plan, fleet = two_workers_on_gpus(), provisioned("local", ("NVIDIA H200, 143771 MiB",))
    with pytest.raises(BadInput, match=r"shows 1 GPU\(s\); NCCL .* 'gloo' lets them share"):
        device_of(plan, fleet)
    assert transport_of(plan, fleet) is None


def test_two_workers_share_a_gpu_where_the_plan_says_how_they_talk() -> None:
    plan = two_workers_on_gpus(transport="gloo")
    fleet = provisioned("local", ("NVIDIA H200, 143771 MiB",))
    assert device_of(plan, fleet) == "cuda"
    assert transport_of(plan, fleet) == "gloo"
    assert transport_of(plan, provisioned("stack", ("NVIDIA L40S, 46068 MiB",))) is None
    with pytest.raises(BadInput, match=r"shows 0 GPU\(s\)\.$"):
        device_of(plan, provisioned("local", ()))
