"""`harness up` to `harness down` on the real engine: placements, the gate, nothing left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.clock import Clock
from harness.cloud.residue import residue
from harness.journal import Journal
from harness.launch.fleets import Joined, driving
from harness.launch.record import tries
from harness.receipts import PreserveReceipt, ReleaseReceipt
from tests.engine.fleets.workshop import ALIVE, Workshop


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

    standing = workshop.resources()
    assert standing.state == "stack still present" and len(standing.hosts) == 2
    assert not any(host.ended_utc for host in standing.hosts)
    cost = workshop.cost(workshop.place.folder / "resources.json")
    assert cost.code == 0 and "In use until its deadline: it costs $3.73 an hour" in cost.out
    assert "\ntotal, a bound" in cost.out and workshop.resources().residue == ()
    sweep = workshop.sweep()
    assert sweep.code == 0 and "in use; it costs $3.73 an hour" in " ".join(sweep.out.split())

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
    entries = len(workshop.entries)
    again = workshop.harness("down").ok()
    assert f"{admitted.fleet} is gone" in again.out and len(workshop.entries) == entries


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
    workshop.cloud.off("NoCapacity")
    workshop.cloud.on("Denied", action="RunInstances")
    stopped = workshop.harness("up")
    assert stopped.code == 3 and "UnauthorizedOperation" in stopped.err
    assert "no host was launched, so nothing costs money" in stopped.err
    assert [each.result for each in tries(workshop.entries)] == ["configuration"]


END = """
import sys
from pathlib import Path
from harness.fleet.stack import StackFleet
fleet = StackFleet(Path(sys.argv[1]), sys.argv[2], keep=sys.argv[3] == "keep")
print("\\n".join(fleet.end()))
print(len(fleet.residue()))
"""


def end_by_run(workshop: Workshop, folder: Path, keep: str = "") -> str:
    """What the run's terminate stage does, in a process of its own."""
    argv = [sys.executable, "-c", END, str(folder), workshop.admitted.fleet, keep]
    done = subprocess.run(
        argv, env=workshop.environment, cwd=workshop.folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_hosts_end_only_after_the_release_and_then_plain_destroy_works(
    workshop: Workshop,
) -> None:
    workshop.harness("up").ok()
    folder = workshop.runs / "toy" / "20261130-000000-aaaa"
    journal = Journal(folder / "journal.jsonl", Clock())
    joined = Joined(
        run=folder.name, plan=str(workshop.plan), plan_hash="a" * 64, folder=str(folder)
    )
    with driving(workshop.place, Clock()) as fleets:
        fleets.note("study", joined.to_json())

    refused = workshop.harness("down")
    assert refused.code == 3 and "its evidence is not preserved" in refused.err
    assert "because of the study" in end_by_run(workshop, folder)
    plain = workshop.pulumi("destroy")
    assert plain.code != 0 and workshop.slots(*ALIVE) == ["0", "1"]

    common: dict[str, Any] = {
        "run": folder.name, "plan_hash": "a" * 64, "started_utc": "x", "finished_utc": "x",
        "seconds": 0.0, "inputs": {},
    }  # fmt: skip
    preserve = PreserveReceipt(
        **common, stage="preserve", store="s3", reader_pid=1, reader="x", objects=(), bytes=0
    )
    release = ReleaseReceipt(
        **common, stage="release", released=True, basis="preserved", why="read back whole"
    )
    journal.append("receipt", "preserve", preserve.to_json())
    journal.append("receipt", "release", release.to_json())
    journal.close()
    assert "kept as asked" in end_by_run(workshop, folder, "keep")
    assert workshop.slots(*ALIVE) == ["0", "1"]

    said = end_by_run(workshop, folder)
    assert said.count("terminated") == 2 and said.endswith("\n0\n")
    assert workshop.slots(*ALIVE) == []
    assert workshop.resources().state == "stack still present"
    workshop.pulumi("destroy").ok()
    assert left(workshop) == ()
