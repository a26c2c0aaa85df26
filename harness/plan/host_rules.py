"""Faults of hosts, store and budget, among them what AWS would refuse only after a launch began."""

from __future__ import annotations

from collections.abc import Iterator

from harness.plan.finding import Finding, error, warning
from harness.plan.hosts import AwsHosts
from harness.plan.plan import Plan
from harness.plan.sizes import (
    checkpoint_disk_bytes,
    checkpoint_stored_bytes,
    stored_bytes,
    weight_bytes,
)
from harness.plan.traffic import dense_bytes

ARMING_S = 900
"""Boot, both deadlines armed and read back take minutes; a shorter study cannot begin."""
LONGEST_S = 30 * 86400
GIB = 2**30
SYSTEM_GIB = 60
"""What the machine image and an environment take of a root volume."""
IOPS_A_GIB = 500
MBPS_AN_IOPS = 0.25
"""gp3's limits (docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html)."""


def host_findings(plan: Plan, fleet_kind: str) -> Iterator[Finding]:
    """All rules of this file, for one kind of fleet ('local', 'hosts-file' or 'stack')."""
    if plan.hosts.local is None and plan.hosts.aws is None:
        yield error("/hosts", "no hosts are declared, so nothing can run")
    elif fleet_kind == "local" and plan.hosts.local is None:
        yield warning("/hosts/local", "the plan declares no workers on this computer")
    if plan.hosts.aws is not None:
        yield from _aws(plan.hosts.aws)
        yield from _volume(plan, plan.hosts.aws)
        yield from _deadline(plan)
    yield from _limits(plan)


def _aws(hosts: AwsHosts) -> Iterator[Finding]:
    for i, zone in enumerate(hosts.zones):
        if zone[:-1] != hosts.region:
            yield error(
                f"/hosts/aws/zones/{i}", f"the zone '{zone}' is not in the region '{hosts.region}'"
            )
    for field in ("zones", "types"):
        values = getattr(hosts, field)
        if len(set(values)) != len(values):
            yield error(f"/hosts/aws/{field}", f"{field} names something twice")
    if hosts.placement == "spread" and hosts.count > 1 and len(set(hosts.zones)) < 2:
        yield error("/hosts/aws/placement", "hosts cannot be spread over one zone")
    if hosts.volume.iops > IOPS_A_GIB * hosts.volume.gib:
        yield error(
            "/hosts/aws/volume/iops",
            f"gp3 gives at most {IOPS_A_GIB} IOPS a GiB, and {hosts.volume.gib} GiB are declared",
        )
    if hosts.volume.throughput_mbps > MBPS_AN_IOPS * hosts.volume.iops:
        yield error(
            "/hosts/aws/volume/throughput_mbps",
            f"gp3 gives at most {MBPS_AN_IOPS} MB/s an IOPS, and {hosts.volume.iops} are declared",
        )


def _volume(plan: Plan, hosts: AwsHosts) -> Iterator[Finding]:
    stored, weights = stored_bytes(plan), weight_bytes(plan)
    if stored is None or weights is None:
        yield error(
            "/model/parameters",
            "the number of parameters is unknown, so neither disk nor storage can be bounded",
        )
        return
    files = stored - checkpoint_stored_bytes(plan) + weights + checkpoint_disk_bytes(plan)
    needed = SYSTEM_GIB + -(-files // GIB)
    if hosts.volume.gib < needed:
        yield error(
            "/hosts/aws/volume/gib",
            f"{hosts.volume.gib} GiB are less than the {needed} GiB that system, seed model and "
            "every arm's files can take",
        )


def _deadline(plan: Plan) -> Iterator[Finding]:
    deadline = plan.budget.deadline_s
    if deadline < ARMING_S:
        yield error(
            "/budget/deadline_s", f"{deadline} s are too short to boot and arm two deadlines"
        )
    if deadline > LONGEST_S:
        yield error("/budget/deadline_s", f"{deadline} s are more than 30 days")


def _limits(plan: Plan) -> Iterator[Finding]:
    seconds = sum(arm.limits.seconds for arm in plan.arms)
    if seconds > plan.budget.deadline_s:
        yield warning(
            "/budget/deadline_s",
            f"the arms may take {seconds} s by their limits, more than the deadline's "
            f"{plan.budget.deadline_s} s",
        )
    most = sum(arm.limits.traffic_gb / arm.workers for arm in plan.arms)
    if most > plan.budget.traffic_gb_per_host:
        yield warning(
            "/budget/traffic_gb_per_host",
            f"the arms may send {most:g} GB a host by their limits, more than the cap of "
            f"{plan.budget.traffic_gb_per_host:g} GB",
        )
    for i, arm in enumerate(plan.arms):
        dense = dense_bytes(plan, arm)
        if dense is not None and dense > arm.limits.traffic_gb * 10**9:
            yield error(
                f"/arms/{i}/limits/traffic_gb",
                f"the dense updates of '{arm.name}' alone send {dense / 10**9:.1f} GB, over its "
                f"limit of {arm.limits.traffic_gb:g} GB",
            )
