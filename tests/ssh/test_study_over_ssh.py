"""A two-host study over SSH is the same study: same parameters, and nothing of ours left."""

from __future__ import annotations

from pathlib import Path

from harness.onhost import processes
from harness.receipts import PreflightReceipt, TerminateReceipt, TrainReceipt
from harness.strict import load_file
from tests.ssh.conftest import Rack
from tests.study.conftest import Desk, make_desk_in


def roots(desk: Desk) -> dict[str, str]:
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    return {arm.arm: arm.candidate.parameter_root for arm in train.arms}


def ours(fleet_id: str) -> list[str]:
    """Every living process that carries the fleet's mark."""
    return [
        processes.command_of(each.pid)
        for each in processes.everything()
        if each.state != "Z"
        and processes.environment_of(each.pid).get("HARNESS_FLEET", "").startswith(fleet_id)
    ]


def test_the_same_study_over_ssh_and_on_this_computer(
    desk: Desk, rack: Rack, tmp_path: Path
) -> None:
    done = rack.run(desk)
    assert done.code == 0, done.err
    local = make_desk_in(tmp_path / "local")
    assert local.run().code == 0
    assert roots(desk) == roots(local)

    preflight = load_file(PreflightReceipt, desk.latest / "receipts" / "preflight.json")
    assert {line.host for line in preflight.lines} >= {"host-0", "host-1"}
    end = load_file(TerminateReceipt, desk.latest / "receipts" / "terminate.json")
    assert end.residue == ()
    fleet = rack.fleets(0)[0].name
    assert ours(fleet) == []
    for machine in rack.machines:
        work = machine.work / "runs" / fleet / "hosts"
        left = {path.name for path in work.glob("*/*")}
        assert left <= {"jobs", "out"}, "what was staged is gone, logs and outputs stay"
        assert not list(machine.work.rglob("*.tmp"))
        assert b"PRIVATE KEY" not in b"".join(
            path.read_bytes() for path in machine.work.rglob("*") if path.is_file()
        )
    again = rack.run(desk)
    assert again.code == 0, "a finished run is left as it is"
    assert len(rack.fleets(0)) == 1
