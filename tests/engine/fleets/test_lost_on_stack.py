"""A host of a stack that AWS took away in the middle of an arm: proved lost, the rest preserved."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

from harness.cloud.residue import residue
from harness.receipts import PreserveReceipt, ReleaseReceipt, TerminateReceipt, TrainReceipt
from harness.results import Resources, Results
from harness.strict import load_file
from tests.engine.boots.power import Power
from tests.engine.fleets.test_stopped import LIMIT_S, NEVER
from tests.engine.fleets.workshop import ALIVE, Workshop
from tests.toy_plan import toy_with


def slow(workshop: Workshop) -> None:
    """Arms that can be met while they train."""
    plan = json.loads(workshop.plan.read_text())
    plan["model"]["parameters"] = 66
    plan["trainer"] = toy_with(workshop.folder, TOY_UPDATE_SECONDS="2")
    workshop.plan.write_text(json.dumps(plan))


def wait_for(power: Power, name: str) -> Path:
    """A file of a job in a work folder of any machine, once it is there."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        for machine in power.machines.values():
            work = machine.folder / "home" / "ubuntu" / "harness" / "runs"
            if found := sorted(work.glob(f"*/hosts/*/{name}")):
                return found[0]
        time.sleep(0.05)
    raise AssertionError(f"{name} never appeared")


def test_what_the_other_host_holds_is_preserved_and_aws_proves_the_rest_lost(
    workshop: Workshop, power: Power
) -> None:
    slow(workshop)
    workshop.harness("admit").ok()
    workshop.harness("up").ok()
    gone = next(i for i in workshop.instances(*ALIVE) if "host-1" in json.dumps(i["Tags"]))
    with workshop.started(NEVER, "run") as process:
        wait_for(power, "out/train.pair.1/losses-1.jsonl")
        ec2 = workshop.cloud.client("ec2")
        ec2.terminate_instances(InstanceIds=[gone["InstanceId"]])
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, err
    assert "1 host(s) still run" in err

    stopped = workshop.harness("run")
    assert stopped.code == 4, stopped.err
    said = " ".join(stopped.err.split())
    assert f"the host {gone['InstanceId']} of slot 1 is not alive any more" in said
    assert "--lost 'host-1: why'" in said, "nothing is given up unasked"
    refused = workshop.harness("run", "--lost", "host-0: a slip")
    assert refused.code == 3 and "AWS says 'running', which is no proof" in refused.err

    done = workshop.harness("run", "--lost", "host-1: AWS took it back")
    assert done.code == 5, done.err + done.out
    assert "host-1 is gone for good: AWS took it back" in " ".join(done.err.split())
    run = (workshop.runs / "toy" / "latest").resolve()
    train = load_file(TrainReceipt, run / "receipts" / "train.json")
    assert [arm.arm for arm in train.arms] == ["single"]
    preserved = load_file(PreserveReceipt, run / "receipts" / "preserve.json")
    whole = {each.name for each in preserved.objects if each.ok}
    assert {"candidates/single/model.safetensors", "arms/pair/losses-0.jsonl"} <= whole
    assert preserved.lost and all("NotFound" in each for each in preserved.lost)
    assert load_file(ReleaseReceipt, run / "receipts" / "release.json").basis == "preserved"
    assert load_file(TerminateReceipt, run / "receipts" / "terminate.json").residue == ()
    results = load_file(Results, run / "results.json")
    assert results.incomplete is not None and results.incomplete.because == "lost-host"

    assert workshop.slots(*ALIVE) == []
    workshop.harness("down").ok()
    assert residue(workshop.aws, workshop.admitted.fleet) == ()
    resources: Resources = workshop.resources()
    assert resources.state == "final" and all(host.ended_utc for host in resources.hosts)
    assert len(resources.volumes or ()) == 2, "the lost host's disk is in the record"
    assert all(volume.gone_utc for volume in resources.volumes or ())
