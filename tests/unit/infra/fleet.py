"""An admitted fleet for tests of the program's pure parts."""

from __future__ import annotations

from typing import Any

from harness.admission import Bound
from harness.fleet.admitted import AdmittedFleet, Placement
from harness.plan.hosts import Volume


def admitted(**changes: Any) -> AdmittedFleet:
    """Two hosts until New Year."""
    bound = Bound(
        fleet_kind="stack", lines=(), allowance_usd="1", total_usd="2", ceiling_usd="3", notes=()
    )
    fields: dict[str, Any] = {
        "fleet": "pair-1",
        "study": "pair",
        "plan_path": "plans/pair/plan.json",
        "plan_hash": "a" * 64,
        "source_commit": "b" * 40,
        "account": "123456789012",
        "region": "us-east-1",
        "attempt": 1,
        "deadline_utc": "2027-01-01T00:00:00.250000Z",
        "count": 2,
        "placements": (Placement(type="g6e.xlarge", zones=("us-east-1a", "us-east-1a")),),
        "one_zone": True,
        "network": "own",
        "image_id": "ami-12c6146b",
        "image_name": "base",
        "volume": Volume(gib=100, iops=4000, throughput_mbps=250),
        "operator_cidr": "203.0.113.7/32",
        "login_public_key": "ssh-ed25519 AAAA",
        "bucket": "harness-bucket",
        "bucket_present": False,
        "prefix": "studies/pair",
        "budget_usd": "50",
        "bound": bound,
    }
    return AdmittedFleet(**{**fields, **changes})
