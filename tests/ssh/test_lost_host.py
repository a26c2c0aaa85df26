"""A host that is gone for good: the rest is preserved, what it held is lost with proof."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from harness.closing import ClosingRecord
from harness.receipts import PreserveReceipt, ReleaseReceipt, ServeReceipt, TrainReceipt
from harness.results import Results
from harness.strict import load_file
from tests.ssh.conftest import Rack
from tests.ssh.machines import kill
from tests.ssh.test_faults import slow_desk, start, wait_for
from tests.study.conftest import make_desk_in
from tests.study.test_serving import changes_of, decision, phase, serving
from tests.toy_plan import toy_with

LOST = ("--lost", "host-1: it burned down")


def jobs_of(rack: Rack) -> set[str]:
    return {p.parent.name for p in rack.fleets(0)[0].glob("hosts/*/jobs/*/started.json")}


def end_what_nobody_can(rack: Rack, slot: int) -> None:
    """The watchdog on a machine that was given up would stay until the deadline, its jobs too."""
    fleet = rack.fleets(slot)[0]
    running = [
        path
        for path in fleet.glob("hosts/*/jobs/*/started.json")
        if not path.with_name("exit.json").exists()
    ]
    for path in (*fleet.glob("deadline/heartbeat.json"), *running):
        kill(json.loads(path.read_text())["pid"], signal.SIGKILL)


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


def test_a_phase_whose_client_was_on_a_host_that_is_gone_is_cut_and_says_what_is_not_known(
    rack: Rack, tmp_path: Path
) -> None:
    rack.hosts_file(patience_s=3)
    wanted = [decision("same-tokens", "serving-token-agreement", "two", 1.0)]
    desk = make_desk_in(
        tmp_path,
        **changes_of(serving=serving([phase("two")], warmup_requests=1), decisions=wanted),
        trainer=toy_with(tmp_path, TOY_TOKEN_SECONDS="0.05"),
    )
    process = start(rack, desk)
    wait_for(rack, 0, "out/serve.two.client/events.jsonl")
    rack.machines[0].stop()
    _, err = process.communicate(timeout=240)
    assert process.returncode == 4, err

    done = rack.run(desk, "--lost", "host-0: it burned down")
    end_what_nobody_can(rack, 0)
    assert done.code == 5, done.err
    assert "not known" in done.out
    (record,) = load_file(ServeReceipt, desk.latest / "receipts" / "serve.json").phases
    assert (record.outcome, record.uncounted, record.events) == ("cut", True, None)
    assert record.cut is not None and record.cut.because == "lost-host"
    first, second = record.replicas
    assert first.served is None and "it burned down" in (first.reason or "")
    assert second.served is not None and second.rank is not None, "the other one was drained"
    preserved = load_file(PreserveReceipt, desk.latest / "receipts" / "preserve.json")
    assert [each.split(":")[0] for each in preserved.lost] == [
        "serving/two/served-0.jsonl", "serving/two/events.jsonl",
    ]  # fmt: skip
    assert "serving/two/served-1.jsonl" in {each.name for each in preserved.objects if each.ok}
    results = load_file(Results, desk.latest / "results.json")
    assert (results.serving[0].outcome, results.serving[0].uncounted) == ("cut", True)
    assert results.incomplete is not None
    assert results.incomplete.not_decided == ("same-tokens",)
    assert desk.harness("verify", str(desk.latest)).code == 0
