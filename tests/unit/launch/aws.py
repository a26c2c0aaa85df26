"""A plan for AWS hosts, and what moto must be told beside its own data."""

from __future__ import annotations

from typing import Any

from tests.toy_plan import toy_plan

ACCOUNT = "123456789012"
"""moto's."""
IMAGE = "base-oss-nvidia-driver-gpu-ubuntu-24.04"
PARAMETER = f"/aws/service/deeplearning/ami/x86_64/{IMAGE}/latest/ami-id"


def aws_plan(**hosts: Any) -> dict[str, Any]:
    """The toy plan on two g6e hosts; `hosts` replaces fields of hosts.aws."""
    plan = toy_plan(store={"kind": "s3"})
    plan["model"] = {"kind": "trainer", "parameters": 1000}
    plan["hosts"]["aws"] = {
        "region": "us-east-1",
        "count": 2,
        "types": ["g6e.xlarge"],
        "zones": ["us-east-1a", "us-east-1b"],
        "placement": "spread",
        "network": "own",
        "image": IMAGE,
        "volume": {"gib": 100, "iops": 3000, "throughput_mbps": 125},
        "read_ahead": {"training_kib": 4096, "staging_kib": 128},
    } | hosts
    plan["budget"] |= {"ceiling_usd": "60", "attempts": 3}
    return plan
