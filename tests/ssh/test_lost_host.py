"""A host that is gone for good: the rest is preserved, what it held is lost with proof."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from harness.closing import ClosingRecord
from harness.receipts import PreserveReceipt, ReleaseReceipt, TrainReceipt
from harness.results import Results
from harness.strict import load_file
from tests.ssh.conftest import Rack
from tests.ssh.test_faults import slow_desk, start, wait_for

LOST = ("--lost", "host-1: it burned down")


def jobs_of(rack: Rack) -> set[str]:
    return {p.parent.name for p in rack.fleets(0)[0].glob("hosts/*/jobs/*/started.json")}


def end_what_nobody_can(rack: Rack, slot: int) -> None:
    """The watchdog on a machine that was given up would stay until the deadline."""
    for beat in rack.fleets(slot)[0].glob("deadline/heartbeat.json"):
        os.kill(json.loads(beat.read_text())["pid"], signal.SIGKILL)


def test_what_the_other_host_holds_is_preserved_and_the_rest_is_lost_with_proof(
    rack: Rack, tmp_path: Path
) -> None:
    rack.hosts_file(patience_s=3)
    desk = slow_desk(tmp_path)
    process = start(rack, desk)
    wait_for(rack, 1, "out/train.pair.1/losses-1.jsonl")
    rack.machines[1].stop()
    _, err = process.communicate(timeout=240)
    assert process.returncode == 4, err
    assert not (desk.latest / "receipts" / "train.json").exists(), "nothing is given up unasked"

    for words, code in (("host-1", 2), ("host-7: gone", 2), ("host-1:  ", 2)):
        assert rack.run(desk, "--lost", words).code == code
    rack.machines[1].start()
    alive = rack.run(desk, *LOST)
    assert alive.code == 3, alive.err
    assert "it answers" in " ".join(alive.err.split())
    rack.machines[1].stop()

    done = rack.run(desk, *LOST)
    assert done.code == 5, done.err
    assert "host-1 is gone for good: it burned down" in " ".join(done.err.split())
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    assert [arm.arm for arm in train.arms] == ["single"]
    assert train.unfinished is not None
    (pair,) = train.unfinished
    assert pair.attempts[0].outcome == "lost"
    assert [each.name for each in pair.losses] == ["arms/pair/losses-0.jsonl"]
    preserved = load_file(PreserveReceipt, desk.latest / "receipts" / "preserve.json")
    whole = {each.name for each in preserved.objects if each.ok}
    assert {"candidates/single/model.safetensors", "arms/pair/losses-0.jsonl"} <= whole
    assert any(each.startswith("arms/pair/losses-1.jsonl: host-1 is") for each in preserved.lost)
    assert all("stated by the user, and it did not answer" in each for each in preserved.lost)
    released = load_file(ReleaseReceipt, desk.latest / "receipts" / "release.json")
    assert (released.released, released.basis) == (True, "preserved")
    assert "recorded as lost, with proof" in released.why
    results = load_file(Results, desk.latest / "results.json")
    assert results.incomplete is not None
    assert results.incomplete.because == "lost-host"
    assert results.incomplete.arms_not_run == ("pair",)
    closing = load_file(ClosingRecord, desk.latest / "closing.json")
    assert closing.preservation is not None
    assert closing.preservation.lost == preserved.lost
    assert any("host-1: nothing was ended there" in each for each in closing.ended)
    report = json.loads((desk.latest / "report" / "report.json").read_text())
    shown = [row["header"] for row in report["tables"]["preservation"]["rows"]]
    assert shown.count("lost") == len(preserved.lost)

    before = jobs_of(rack)
    assert rack.run(desk).code == 5
    assert jobs_of(rack) == before, "nothing is trained again"
    assert desk.harness("verify", str(desk.latest)).code == 0
    end_what_nobody_can(rack, 1)
