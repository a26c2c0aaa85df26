"""The two records that lead from a run to its fleet's bucket, as their owners write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.admission import Bound
from harness.clock import Clock
from harness.fleet.admitted import AdmittedFleet, Placement
from harness.journal import Journal
from harness.plan.hosts import Volume
from trainer import contract


def admitted_in(runs: Path, fleet: str, *, bucket: str) -> None:
    """runs/fleets/FLEET/admitted.json."""
    admitted = AdmittedFleet(
        fleet=fleet,
        study="toy",
        plan_path="plans/toy/plan.json",
        plan_hash="a" * 64,
        source_commit="b" * 40,
        account="123456789012",
        region="us-east-1",
        attempt=1,
        deadline_utc="2026-11-30T12:00:00.000000Z",
        count=2,
        placements=(Placement(type="g6e.xlarge", zones=("us-east-1a", "us-east-1a")),),
        one_zone=True,
        network="own",
        image_id="ami-12c6146b",
        image_name="base",
        volume=Volume(gib=100, iops=4000, throughput_mbps=250),
        operator_cidr="203.0.113.7/32",
        login_public_key="ssh-ed25519 AAAA",
        bucket=bucket,
        bucket_present=True,
        prefix="study/",
        budget_usd="50",
        bound=Bound(
            fleet_kind="stack", lines=(), allowance_usd="1", total_usd="20", ceiling_usd="50",
            notes=(),
        ),
    )  # fmt: skip
    folder = runs / "fleets" / fleet
    folder.mkdir(parents=True)
    contract.write_json(folder / "admitted.json", admitted.to_json())


def provisioned(run: Path, fleet: str) -> None:
    """The provision stage's receipt in the run's journal, as far as it is read."""
    journal = Journal(run / "journal.jsonl", Clock())
    receipt: dict[str, Any] = {"stage": "provision", "fleet": fleet}
    journal.append("receipt", "provision", receipt)
    journal.close()
