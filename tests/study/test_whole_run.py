"""What a finished study leaves, and what the same command does again."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import get_args

from harness.commitments import Repository, require_ancestor
from harness.journal import read_entries
from harness.onhost import deadline, processes
from harness.receipts import RECEIPTS, StageName
from harness.results import Resources, Results
from harness.seal.extract import extract
from harness.strict import load_file
from tests.study.conftest import Desk, MakeDesk
from trainer import contract


def test_every_stage_has_its_receipt_in_order(finished: Desk) -> None:
    entries, _ = read_entries(finished.latest / "journal.jsonl")
    stages = [entry.key for entry in entries if entry.kind == "receipt"]
    assert stages == list(get_args(StageName))
    for stage, model in RECEIPTS.items():
        load_file(model, finished.latest / "receipts" / f"{stage}.json")


def test_no_watchdog_outlives_a_finished_run(finished: Desk) -> None:
    seen = deadline.state(finished.latest / "fleet")
    assert seen["status"] == "disarmed"
    assert processes.look(seen["pid"]) is None


def test_intent_stands_before_outcome(finished: Desk) -> None:
    entries, _ = read_entries(finished.latest / "journal.jsonl")
    intents = {entry.key: entry.seq for entry in entries if entry.kind == "intent"}
    outcomes = {entry.key: entry.seq for entry in entries if entry.kind == "outcome"}
    assert intents.keys() == outcomes.keys()
    assert all(intents[key] < outcomes[key] for key in intents)


def test_commitments_are_ordered_and_touch_nothing_else(finished: Desk) -> None:
    assert finished.git("status", "--porcelain").splitlines() == [
        "A  notes.txt", "?? cache/", "?? home/", "?? plans/", "?? runs/",
    ]  # fmt: skip
    branch = f"harness/{finished.latest.name}"
    subjects = finished.git("log", "--format=%s", branch).splitlines()
    assert len(subjects) == 2
    assert "Select" in subjects[0]
    assert "plan" in subjects[1]
    first, last = f"{branch}~1", branch
    require_ancestor(Repository(finished.folder, made=False), first, last, "order")
    kept = finished.git("ls-tree", "-r", "--name-only", branch).splitlines()
    assert kept == [
        "plans/toy/plan.json",
        "plans/toy/prepared.json",
        f"plans/toy/runs/{finished.latest.name}/selection.json",
    ]


def test_the_selection_names_reference_and_every_arm(finished: Desk) -> None:
    path = f"plans/toy/runs/{finished.latest.name}/selection.json"
    selection = json.loads(finished.git("show", f"harness/{finished.latest.name}:{path}"))
    assert set(selection["candidates"]) == {"single", "pair"}
    results = load_file(Results, finished.latest / "results.json")
    roots = {model.name: model.parameter_root for model in results.models}
    assert roots["reference"] == selection["reference"]["parameter_root"]
    for arm in ("single", "pair"):
        assert roots[arm] == selection["candidates"][arm]["parameter_root"]


def test_both_ways_of_training_give_the_same_parameters(finished: Desk) -> None:
    results = load_file(Results, finished.latest / "results.json")
    single, pair = results.arms
    assert single.parameter_root == pair.parameter_root
    assert results.models[1].overall.correct > results.models[0].overall.correct


def test_resources_say_what_it_cost_at_most(finished: Desk) -> None:
    resources = load_file(Resources, finished.latest / "resources.json")
    assert resources.total_bound_usd == "0"
    assert resources.residue == ()
    assert any("not applicable" in line for line in resources.deadlines)
    assert all(host.seconds is not None for host in resources.hosts)


def test_the_same_command_again_trains_nothing(finished: Desk) -> None:
    before = (finished.latest / "journal.jsonl").read_bytes()
    done = finished.run()
    assert done.code == 0
    assert "pair-gains" in done.out
    assert (finished.latest / "journal.jsonl").read_bytes() == before


def test_machines_get_one_json_value(finished: Desk) -> None:
    done = finished.run("--json")
    value = json.loads(done.out)
    assert value["results"]["schema"] == "harness/results/1"
    assert Path(value["report"]).is_file()


def test_verify_recomputes_every_byte_and_finds_a_changed_one(
    finished: Desk, tmp_path: Path
) -> None:
    assert finished.harness("verify", str(finished.latest)).code == 0
    kept = finished.harness("keep", str(finished.latest), "--into", str(tmp_path))
    assert kept.code == 0, kept.err
    assert finished.harness("verify", str(tmp_path / "toy")).code == 0
    archive = tmp_path / "toy" / "evidence.tar.gz"
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 1
    archive.write_bytes(bytes(data))
    done = finished.harness("verify", str(tmp_path / "toy"))
    assert done.code == 2, done.out
    assert "evidence.tar.gz" in done.err


def test_a_report_that_was_edited_is_found(finished: Desk, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(finished.latest, copy, ignore=shutil.ignore_patterns("fleet", "work"))
    page = copy / "report" / "index.html"
    page.write_text(page.read_text().replace("PASS", "FAIL", 1) + " ")
    done = finished.harness("verify", str(copy))
    assert done.code == 2
    assert "index.html" in done.err


def test_the_same_plan_again_has_the_same_identity_and_roots(
    finished: Desk, make_desk: MakeDesk
) -> None:
    other = make_desk()
    assert other.run().code == 0
    one = load_file(Results, finished.latest / "results.json")
    two = load_file(Results, other.latest / "results.json")
    assert one.identity == two.identity
    assert [arm.parameter_root for arm in one.arms] == [arm.parameter_root for arm in two.arms]


def test_a_replication_is_a_second_run_and_says_so(make_desk: MakeDesk) -> None:
    desk = make_desk()
    assert desk.run().code == 0
    first = desk.latest
    assert desk.run("--again").code == 0
    assert desk.latest != first
    limits = load_file(Results, desk.latest / "results.json").limits
    assert any("replication" in sentence.lower() for sentence in limits), limits


def test_the_page_has_every_case_that_was_prepared_with_every_models_answer(
    finished: Desk, tmp_path: Path
) -> None:
    extract(finished.latest / "evidence.tar.gz", tmp_path / "members", expected_tar_sha256=None)
    asked = contract.read_lines(tmp_path / "members" / "inputs" / "test.answers.jsonl")
    page = (finished.latest / "report" / "answers.html").read_text()
    shown = re.findall(r'<article id="c\d+"[^>]* data-answered="([^"]*)"', page)
    assert shown == ["reference single pair"] * len(asked)
    assert len(asked) == 16
    for case in asked:
        assert page.count(case["id"]) >= 1
