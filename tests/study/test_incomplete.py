"""At the point of no return what runs is stopped, what exists is preserved and the rest is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.closing import ClosingRecord
from harness.receipts import EvaluateReceipt, PreserveReceipt, TrainReceipt
from harness.results import Results
from harness.strict import load_file
from tests.study.conftest import Desk, Done, MakeDesk
from tests.toy_plan import toy_with

LEAPING = Path(__file__).with_name("leaping.py")
IN_PAIR = "toy/2*/fleet/hosts/host-1/out/train.pair.1/losses-1.jsonl"
IN_EVALUATION = "toy/2*/fleet/hosts/host-0/jobs/evaluate.test.reference.1/started.json"


def run_leaping(desk: Desk, pattern: str, *more: str, **environment: str) -> Done:
    """`harness run --local`, whose clock passes the deadline once a file of that pattern exists."""
    done = subprocess.run(
        [sys.executable, str(LEAPING), pattern, "run", str(desk.plan), "--local", *more],
        cwd=desk.folder, env=desk.environment(**environment),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def jobs_of(desk: Desk) -> set[str]:
    return {path.parent.name for path in desk.latest.glob("fleet/hosts/*/jobs/*/started.json")}


def report_of(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((desk.latest / "report" / "report.json").read_text())
    return found


def test_the_running_arm_is_stopped_and_the_rest_of_the_study_is_incomplete(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(trainer=toy_with(tmp_path, TOY_FAULT="stall:1:2"))
    told = tmp_path / "told"
    notice = {"HARNESS_NOTICE": f"tee -a {told}"}
    done = run_leaping(desk, IN_PAIR, **notice)
    assert done.code == 4, done.err
    assert "incomplete" in done.err
    assert "point of no return" in " ".join(done.err.split())
    assert "--again" in done.err

    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    assert [arm.arm for arm in train.arms] == ["single"]
    assert train.unfinished is not None
    (pair,) = train.unfinished
    assert (pair.name, [each.outcome for each in pair.attempts]) == ("pair", ["stopped"])
    assert len(pair.attempts[0].logs) == 2
    assert {each.name for each in pair.losses} == {f"arms/pair/losses-{r}.jsonl" for r in (0, 1)}

    results = load_file(Results, desk.latest / "results.json")
    assert results.incomplete is not None
    assert results.incomplete.arms_not_run == ("pair",)
    assert results.incomplete.not_decided == ("pair-gains", "ranks-agree")
    assert results.decisions == ()
    assert [arm.name for arm in results.arms] == ["single"]
    assert {"select", "evaluate", "validate"} <= set(results.not_run)
    closing = load_file(ClosingRecord, desk.latest / "closing.json")
    assert closing.incomplete == results.incomplete.why
    assert closing.residue == ()
    preserved = load_file(PreserveReceipt, desk.latest / "receipts" / "preserve.json")
    names = {each.name for each in preserved.objects if each.ok}
    assert {"candidates/single/model.safetensors", "arms/pair/losses-1.jsonl"} <= names
    assert not any(name.startswith("candidates/pair") for name in names)

    page = (desk.latest / "report" / "index.html").read_text()
    assert "The study is incomplete." in page
    report = report_of(desk)
    assert report["verdict"]["outcome"] == "not run"
    assert "pair-gains, ranks-agree not decided" in report["verdict"]["sentence"]
    assert report["tables"]["attempts"]["rows"][-1]["header"] == "pair, 1"
    assert report["disagreements"] == []

    before = jobs_of(desk)
    again = desk.run(**notice)
    assert again.code == 4, again.err
    assert jobs_of(desk) == before, "nothing is trained again"
    assert len(list(desk.runs.glob("toy/2*"))) == 1
    assert desk.harness("verify", str(desk.latest)).code == 0
    events = [json.loads(line)["event"] for line in told.read_text().splitlines()]
    assert sorted(events) == ["arm ended", "deadline near", "failure"]


def test_what_was_measured_by_then_is_decided_and_the_rest_is_not(make_desk: MakeDesk) -> None:
    desk = make_desk()
    done = run_leaping(desk, IN_EVALUATION, "--json")
    assert done.code == 4, done.err
    assert json.loads(done.out)["results"]["incomplete"]["arms_not_run"] == []
    evaluated = load_file(EvaluateReceipt, desk.latest / "receipts" / "evaluate.json")
    assert evaluated.incomplete is not None
    assert "pair" not in {model.name for model in evaluated.models}
    results = load_file(Results, desk.latest / "results.json")
    assert results.incomplete is not None
    assert [each.name for each in results.decisions] == ["ranks-agree"]
    assert results.decisions[0].passed
    assert results.incomplete.not_decided == ("pair-gains",)
    assert report_of(desk)["disagreements"] == []
    assert desk.harness("verify", str(desk.latest)).code == 0


BEFORE_TRAINING = {
    "provision": ("toy/2*/fleet", "probe"),
    "push": ("toy/2*/receipts/provision.json", "probe"),
    "probe": ("toy/2*/fleet/hosts/host-0/jobs/probe.single-4.1/started.json", "train"),
}
"""By the stage that the deadline finds: the file that is there then, and a stage that never runs
(a probe's trial may end in the moment in which it is stopped: then training is not begun)."""


@pytest.mark.parametrize("stage", BEFORE_TRAINING)
def test_a_deadline_that_passes_before_training_ends_the_run_by_itself(
    make_desk: MakeDesk, stage: str
) -> None:
    desk = make_desk()
    pattern, never = BEFORE_TRAINING[stage]
    done = run_leaping(desk, pattern)
    assert done.code == 4, done.err
    assert "the study is preserved and ended, and not whole" in " ".join(done.err.split())
    assert "--abandon" not in done.err
    assert "--again" in done.err

    kept = {path.stem for path in (desk.latest / "receipts").iterdir()}
    assert {stage, "seal", "preserve", "release", "terminate", "report"} <= kept
    assert (
        never not in kept
        or load_file(TrainReceipt, desk.latest / "receipts" / "train.json").arms == ()
    )
    assert not any(job.startswith(("train.", "evaluate.")) for job in jobs_of(desk))
    results = load_file(Results, desk.latest / "results.json")
    assert results.incomplete is not None
    assert results.incomplete.because == "deadline"
    assert results.incomplete.arms_not_run == ("single", "pair")
    assert results.incomplete.not_decided == ("pair-gains", "ranks-agree")
    assert (results.models, results.arms, results.decisions) == ((), (), ())
    preserved = load_file(PreserveReceipt, desk.latest / "receipts" / "preserve.json")
    assert {"train.clean.jsonl", "evidence.tar.gz"} <= {o.name for o in preserved.objects if o.ok}
    closing = load_file(ClosingRecord, desk.latest / "closing.json")
    assert (closing.release.basis, closing.residue) == ("preserved", ())
    assert "The study is incomplete." in (desk.latest / "report" / "index.html").read_text()

    status = desk.harness("status").out
    assert "not run" in status and "later" not in status

    before = jobs_of(desk)
    assert desk.run().code == 4
    assert jobs_of(desk) == before, "the same command starts nothing"
    assert desk.harness("verify", str(desk.latest)).code == 0
