"""`harness up` to `harness down` on the real engine: placements, the gate, nothing left."""

from __future__ import annotations

import json

from harness.cloud.residue import residue
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
