"""`harness up` to `harness down` on the real engine: placements, the gate, nothing left."""

from __future__ import annotations

import json
from pathlib import Path

from harness.clock import Clock
from harness.cloud.residue import residue
from harness.launch.fleets import driving
from harness.launch.record import tries
from tests.engine.fleets.workshop import Workshop

ALIVE = ("pending", "running", "stopping", "stopped", "shutting-down")


def left(workshop: Workshop) -> tuple[str, ...]:
    """All of the fleet that this cloud still shows."""
    fleet = workshop.admitted.fleet
    return tuple(each.sentence() for each in residue(workshop.aws, fleet))


def test_up_again_and_down_leave_only_the_bucket(workshop: Workshop) -> None:
    said = workshop.harness("up").ok()
    assert "an hour. Next: harness run" in said.out
    assert workshop.slots(*ALIVE) == ["0", "1"]
    ids = {host["InstanceId"] for host in workshop.instances(*ALIVE)}
    s3 = workshop.cloud.client("s3")
    admitted = workshop.admitted
    for slot in (0, 1):
        key = f"{admitted.prefix}/fleets/{admitted.fleet}/acknowledged/{slot}"
        record = json.loads(s3.get_object(Bucket=admitted.bucket, Key=key)["Body"].read())
        assert record["instance_id"] in ids
    mirror = f"{admitted.prefix}/fleets/{admitted.fleet}/journal.jsonl"
    copy = s3.get_object(Bucket=admitted.bucket, Key=mirror)["Body"].read()
    assert workshop.place.journal_path.read_bytes().startswith(copy[:200])

    refused = workshop.harness("admit")
    assert refused.code == 3 and "is there already" in refused.err

    again = workshop.harness("up", "--json").ok()
    assert {host["instance_id"] for host in json.loads(again.out)["hosts"]} == ids

    workshop.harness("down").ok()
    assert workshop.slots(*ALIVE) == []
    assert left(workshop) == ()
    resources = workshop.resources()
    assert resources.state == "final" and resources.residue == ()
    assert len(resources.hosts) == 2 and all(host.seconds for host in resources.hosts)
    assert s3.head_bucket(Bucket=admitted.bucket)
    assert workshop.harness("down").code == 2, "there is no fleet any more"


def test_no_capacity_goes_on_and_a_denial_stops(workshop: Workshop) -> None:
    bystander = workshop.cloud.client("ec2").run_instances(ImageId="ami-1", MinCount=1, MaxCount=1)
    other = bystander["Instances"][0]["InstanceId"]
    workshop.write("walk", zones=["us-east-1a", "us-east-1b"], placement="one-zone")
    workshop.cloud.on("NoCapacity", zone="us-east-1a", nth=tuple(range(2, 12)))
    workshop.harness("up").ok()
    assert workshop.slots(*ALIVE) == ["0", "1"]
    first, second = tries(workshop.entries)
    assert (first.result, len(first.launched), second.result) == ("no capacity", 1, "complete")
    assert workshop.admitted.chosen == 1
    alive = workshop.instances(*ALIVE)
    zones = {i["Placement"]["AvailabilityZone"] for i in alive if i["InstanceId"] != other}
    assert zones == {"us-east-1b"}
    workshop.harness("down").ok()
    assert {host["InstanceId"] for host in workshop.instances(*ALIVE)} == {other}

    workshop.write("denied", zones=["us-east-1a", "us-east-1b"], placement="one-zone")
    workshop.cloud.on("Denied", action="RunInstances")
    stopped = workshop.harness("up")
    assert stopped.code == 3 and "UnauthorizedOperation" in stopped.err
    assert "no host was launched, so nothing costs money" in stopped.err
    assert [each.result for each in tries(workshop.entries)] == ["configuration"]


def test_a_study_on_the_fleet_keeps_the_gate_closed_until_it_is_given_up(
    workshop: Workshop,
) -> None:
    workshop.harness("up").ok()
    folder = workshop.runs / "toy" / "20261130-000000-aaaa"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_bytes(b"")
    joined = {"run": folder.name, "plan": str(workshop.plan), "plan_hash": "a" * 64,
              "folder": str(folder)}  # fmt: skip
    with driving(workshop.place, Clock()) as journal:
        journal.note("study", joined)
    refused = workshop.harness("down")
    assert refused.code == 3 and "its evidence is not preserved" in refused.err
    assert workshop.slots(*ALIVE) == ["0", "1"]


def test_access_changes_the_rule_and_leaves_up_nothing_to_do(workshop: Workshop) -> None:
    workshop.harness("up").ok()
    done = workshop.harness("access", "--address", "203.0.113.9", "--json").ok()
    assert json.loads(done.out)["rules"] == 1
    assert workshop.admitted.operator_cidr == "203.0.113.9/32"
    pages = workshop.cloud.client("ec2").describe_security_group_rules()["SecurityGroupRules"]
    ssh = [rule["CidrIpv4"] for rule in pages if rule.get("FromPort") == 22 and "CidrIpv4" in rule]
    assert ssh == ["203.0.113.9/32"]
    assert Path(workshop.folder / "Pulumi.toy.yaml").read_text().count("203.0.113.9/32") == 1
