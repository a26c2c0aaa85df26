"""Whole studies on hosts of a stack that really boot: launched, run over SSH, ended, paid."""

from __future__ import annotations

import json
from pathlib import Path

from harness import money
from harness.cloud.residue import residue
from harness.receipts import PreserveReceipt, ProvisionReceipt, ReleaseReceipt, TerminateReceipt
from harness.results import Resources
from harness.strict import load_file
from tests.engine.boots.power import Power
from tests.engine.fleets.workshop import ALIVE, Workshop


def one_arm(workshop: Workshop, name: str) -> None:
    """The toy plan with its arm of two workers alone, for AWS alone, and data of its own."""
    plan = json.loads(workshop.write(name).read_text())
    plan["seed"] = name
    plan["model"]["parameters"] = 66
    plan["arms"] = [arm for arm in plan["arms"] if arm["name"] == "pair"]
    del plan["hosts"]["local"]
    workshop.plan.write_text(json.dumps(plan))


def newest(workshop: Workshop, name: str) -> Path:
    return (workshop.runs / name / "latest").resolve()


def test_one_command_runs_a_study_another_joins_and_plain_destroy_removes_the_rest(
    workshop: Workshop, power: Power
) -> None:
    one_arm(workshop, "first")
    done = workshop.harness("run", "--up", "--keep-hosts").ok()
    assert "Worst case (stack)" in done.out
    assert "The hosts are kept as asked; they cost $3.73 an hour until" in done.out
    assert workshop.slots(*ALIVE) == ["0", "1"]
    fleet, first = workshop.admitted.fleet, newest(workshop, "first")

    one_arm(workshop, "second")
    done = workshop.harness("run", "--fleet", fleet).ok()
    assert f"next: harness down {workshop.plan}" in done.out, "the stack still stands"
    run = newest(workshop, "second")
    receipts = run / "receipts"
    provisioned = load_file(ProvisionReceipt, receipts / "provision.json")
    proofs = [(each.kind, each.armed) for each in provisioned.deadlines]
    assert proofs == [("inner", True), ("inner", True), ("outer", True)]
    assert provisioned.notes == (), "each console shows the keys that its host published"
    preserved = load_file(PreserveReceipt, receipts / "preserve.json")
    assert preserved.store == "s3" and preserved.reader.startswith("host-1 of the fleet")
    assert load_file(ReleaseReceipt, receipts / "release.json").basis == "preserved"
    ended = load_file(TerminateReceipt, receipts / "terminate.json")
    assert ended.residue == () and all("force, no OS shutdown" in each for each in ended.ended)

    assert workshop.slots(*ALIVE) == []
    assert [machine.process for machine in power.machines.values()] == [None, None]
    assert workshop.cloud.client("ec2").describe_volumes()["Volumes"] == []
    resources = load_file(Resources, run / "resources.json")
    assert (resources.state, resources.studies) == ("stack still present", (first.name, run.name))
    assert len(resources.volumes or ()) == 2 and all(v.gone_utc for v in resources.volumes or ())

    stored = [line.what for line in resources.lines if line.what.startswith("S3 storage")]
    assert len(stored) == 2 and stored[1].endswith(f", run {run.name}"), "each study's own"
    assert resources.total_bound_usd == money.total(
        [*(line.bound_usd for line in resources.lines), resources.allowance_usd]
    )

    workshop.pulumi("destroy").ok()
    assert residue(workshop.aws, fleet) == ()
    paid = workshop.cost(workshop.place.folder).ok()
    assert f"studies: {first.name}, {run.name}; attempts: 1" in " ".join(paid.out.split())
    assert "(stack, final)" in paid.out and "total, a bound" in paid.out
    assert max(map(len, paid.out.splitlines())) <= 80
    kept = {each["Name"] for each in workshop.cloud.client("s3").list_buckets()["Buckets"]}
    assert kept == {workshop.admitted.bucket}
