"""What is refused: changed plans, inputs and trainers, scoring before the selection, serving."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness import pipeline
from harness.clock import Clock
from harness.display.progress import make_progress
from harness.errors import Refused
from harness.plan import load_plan
from harness.run import find_place, open_study
from harness.stages.evaluate import evaluate
from harness.stages.stamp import Stamp
from harness.study import Receipts, Study
from tests.study.conftest import Desk, MakeDesk
from tests.toy_plan import TOY


def stopped_before(desk: Desk, stage: str) -> tuple[Study, Receipts]:
    """Run the stages before `stage` in this process."""
    import sys

    loaded, runs = load_plan(desk.plan), desk.runs
    assert desk.harness("prepare", str(desk.plan)).code == 0
    place = find_place(loaded, runs)
    assert place is not None
    study = open_study(loaded, place, runs, make_progress(sys.stderr, as_json=True), Clock())
    before = next(n for n, each in enumerate(pipeline.STAGES) if each.name == stage)
    return study, pipeline.advance(study, pipeline.STAGES[:before])


def end(study: Study) -> None:
    pipeline.advance(study)
    study.journal.close()


def test_nothing_is_scored_before_the_selection_exists(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk()
    monkeypatch.setenv("HARNESS_CACHE", str(desk.folder / "cache"))
    study, done = stopped_before(desk, "select")
    stamp = Stamp(study, "evaluate", study.clock.utc(), study.clock.monotonic(), {})
    with pytest.raises(Refused):
        evaluate(study, done, stamp)
    assert not list(desk.latest.glob("fleet/hosts/*/jobs/evaluate*")), "a scoring job was started"
    end(study)


def test_a_selection_that_left_the_branch_is_no_selection(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk()
    monkeypatch.setenv("HARNESS_CACHE", str(desk.folder / "cache"))
    study, done = stopped_before(desk, "evaluate")
    branch = f"refs/heads/harness/{desk.latest.name}"
    tip = desk.git("rev-parse", branch).strip()
    desk.git("update-ref", branch, f"{tip}~1")
    stamp = Stamp(study, "evaluate", study.clock.utc(), study.clock.monotonic(), {})
    with pytest.raises(Refused, match="selection left the run's branch"):
        evaluate(study, done, stamp)
    assert not list(desk.latest.glob("fleet/hosts/*/jobs/evaluate*"))
    desk.git("update-ref", branch, tip)
    end(study)


def test_a_changed_plan_is_refused(make_desk: MakeDesk) -> None:
    desk = make_desk()
    assert desk.harness("prepare", str(desk.plan)).code == 0
    plan = json.loads(desk.plan.read_text())
    plan["recipe"]["optimizer"]["lr"] = 0.002
    desk.plan.write_text(json.dumps(plan))
    done = desk.run()
    assert done.code == 3, done.err
    assert "plan.json changed" in done.err.replace("\n", " ")
    assert "next: harness init" in done.err


def test_a_changed_prepared_input_is_refused(make_desk: MakeDesk) -> None:
    desk = make_desk()
    assert desk.harness("prepare", str(desk.plan)).code == 0
    path = desk.plan.with_name("prepared.json")
    prepared = json.loads(path.read_text())
    prepared["identity"] = "0" * 64
    path.write_text(json.dumps(prepared))
    done = desk.run()
    assert done.code == 3, done.err
    assert "not what was prepared" in " ".join(done.err.split())


def test_a_changed_trainer_is_refused(make_desk: MakeDesk, tmp_path: Path) -> None:
    own = tmp_path / "own-trainer"
    shutil.copytree(TOY, own, ignore=shutil.ignore_patterns("__pycache__"))
    desk = make_desk(trainer={"kind": "tree", "path": str(own)})
    assert desk.harness("prepare", str(desk.plan)).code == 0
    with (own / "launch").open("a") as handle:
        handle.write("\n# changed\n")
    done = desk.run()
    assert done.code == 3, done.err
    assert "trainer changed" in " ".join(done.err.split())


def test_a_prepared_file_changed_in_the_store_stops_the_push(make_desk: MakeDesk) -> None:
    desk = make_desk()
    assert desk.harness("prepare", str(desk.plan)).code == 0
    prepared = json.loads(desk.plan.with_name("prepared.json").read_text())
    digest = next(f["sha256"] for f in prepared["files"] if f["name"] == "schedule.json")
    (stored,) = desk.runs.glob(f"store/objects/*/{digest}")
    stored.chmod(0o644)
    data = bytearray(stored.read_bytes())
    data[10] ^= 1
    stored.write_bytes(bytes(data))
    done = desk.run()
    assert done.code in (4, 5), done.out + done.err
    assert digest[:12] in done.err.replace("\n", "")


def test_without_local_it_names_the_next_command(make_desk: MakeDesk) -> None:
    desk = make_desk()
    done = desk.harness("run", str(desk.plan))
    assert done.code == 2
    assert "--local" in done.err
