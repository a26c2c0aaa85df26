"""A whole study on hosts of a stack that really boot: launched, run over SSH, ended, paid."""

from __future__ import annotations

import json

from harness.cloud.residue import residue
from harness.receipts import PreserveReceipt, ProvisionReceipt, ReleaseReceipt, TerminateReceipt
from harness.results import Resources
from harness.strict import load_file
from tests.engine.boots.power import Power
from tests.engine.fleets.workshop import ALIVE, Workshop


def one_arm(workshop: Workshop) -> None:
    """The toy plan with its arm of two workers alone, for AWS alone."""
    plan = json.loads(workshop.plan.read_text())
    plan["model"]["parameters"] = 66
    plan["arms"] = [arm for arm in plan["arms"] if arm["name"] == "pair"]
    del plan["hosts"]["local"]
    workshop.plan.write_text(json.dumps(plan))


def test_one_command_runs_a_study_and_plain_destroy_removes_the_rest(
    workshop: Workshop, power: Power
) -> None:
    one_arm(workshop)
    done = workshop.harness("run", "--up").ok()
    assert "Worst case (stack)" in done.out
    assert f"next: harness down {workshop.plan}" in done.out, "the stack still stands"

    run = (workshop.runs / "toy" / "latest").resolve()
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
    assert (resources.state, resources.studies) == ("stack still present", (run.name,))
    assert len(resources.volumes or ()) == 2 and all(v.gone_utc for v in resources.volumes or ())

    workshop.pulumi("destroy").ok()
    assert residue(workshop.aws, workshop.admitted.fleet) == ()
    paid = workshop.cost(workshop.place.folder).ok()
    assert "(stack, final)" in paid.out and "total, a bound" in paid.out
    assert max(map(len, paid.out.splitlines())) <= 80
    kept = {each["Name"] for each in workshop.cloud.client("s3").list_buckets()["Buckets"]}
    assert kept == {workshop.admitted.bucket}
