"""Serving phases in a whole run: real replicas, fronts and client on loopback."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.plan import load_plan
from harness.receipts import PhaseRecord, ServeReceipt
from harness.results import PhaseResult, Results
from harness.seal.extract import extract
from harness.strict import load_file
from harness.validation.served import check_served
from tests.study.conftest import Desk, MakeDesk, make_desk_in
from tests.toy_plan import PLAN, toy_with

REQUESTS = 32
SHORT = 8
LIMIT_S = 600.0


def phase(name: str, replicas: int = 2, fault: str = "none", **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "fault": fault, **more}


FAULTY = {
    "killed": {"reset": 1, "refused": SHORT // 2 - 1},
    "late-answer": {"timed-out": SHORT // 2},
    "silent": {"timed-out": SHORT // 2},
    "wrong-identity": {"wrong-identity": SHORT // 2},
    "truncated": {"truncated": SHORT // 2},
}
"""What the first attempts at the last replica end as."""
PHASES = [
    phase("one", 1),
    phase("two"),
    phase("one-of-two-stopped", fault="stopped"),
    *(phase(fault, fault=fault, requests=SHORT) for fault in FAULTY),
    phase("open", arrivals_per_s=40.0),
    phase("open-slow", arrivals_per_s=20.0, requests=SHORT),
]


def serving(phases: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    return {
        "candidate": "single", "requests": REQUESTS, "concurrency": 2, "attempts": 2,
        "timeout_s": 3.0, "warmup_requests": 4, "max_new_tokens": 96, "phases": phases, **changes,
    }  # fmt: skip


def decision(name: str, statistic: str, candidate: str, margin: float, **more: Any) -> Any:
    return {
        "name": name, "claim": "Declared beforehand.", "statistic": statistic,
        "candidate": candidate, "bound": "at-least", "margin": margin, **more,
    }  # fmt: skip


def changes_of(**serving_section: Any) -> dict[str, Any]:
    data = copy.deepcopy(PLAN["data"])
    data["roles"]["development"] = REQUESTS
    return {"data": data, "arms": [PLAN["arms"][0]], "decisions": [], **serving_section}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A study with every kind of phase, run to its report. Tests only look at it."""
    desk = make_desk_in(
        tmp_path_factory.mktemp("served"),
        **changes_of(
            serving=serving(PHASES),
            decisions=[
                decision("same-tokens", "serving-token-agreement", "one-of-two-stopped", 1.0),
                decision("not-slower", "serving-throughput-ratio", "two", 0.001, reference="one"),
            ],
        ),
    )
    done = desk.run()
    assert done.code == 0, done.err
    assert "one-of-two-stopped" in done.out
    return desk


def results_of(desk: Desk) -> dict[str, PhaseResult]:
    found = load_file(Results, desk.latest / "results.json").serving
    return {each.name: each for each in found}


def record_of(desk: Desk, name: str) -> PhaseRecord:
    receipt = load_file(ServeReceipt, desk.latest / "receipts" / "serve.json")
    return next(each for each in receipt.phases if each.name == name)


def test_32_of_32_in_each_of_the_three_phases(served: Desk) -> None:
    found = results_of(served)
    assert list(found) == [each["name"] for each in PHASES]
    for name in ("one", "two", "one-of-two-stopped"):
        assert (found[name].outcome, found[name].why) == ("passed", ""), name
        assert (found[name].answered, found[name].requests) == (REQUESTS, REQUESTS)
        assert found[name].cache_hits == 0
        assert found[name].duplicates == 0
        assert set(found[name].latency_s) == {"p50", "p95", "p99", "mean"}


def test_the_stopped_replica_costs_16_first_attempts_and_no_request(served: Desk) -> None:
    found = results_of(served)["one-of-two-stopped"]
    assert (found.first_failures, found.retries_answered) == (16, 16)
    assert found.failures == {"refused": 16}
    fates = record_of(served, "one-of-two-stopped").fates
    retried = [fate for fate in fates if len(fate.attempts) == 2]
    assert len(retried) == 16
    for fate in retried:  # one identity over both attempts, executed once
        assert [each.replica for each in fate.attempts] == ["host-1", "host-0"]
        assert (fate.executions, fate.completed) == (1, 1)
    assert len({fate.request for fate in fates}) == REQUESTS


@pytest.mark.parametrize("fault", FAULTY)
def test_a_failing_replica_is_survived_and_told(served: Desk, fault: str) -> None:
    found = results_of(served)[fault]
    assert (found.outcome, found.answered) == ("passed", SHORT), found.why
    assert (found.first_failures, found.retries_answered) == (SHORT // 2, SHORT // 2)
    if fault == "killed":  # a second request may have been on its way to it
        assert set(found.failures) <= {"reset", "refused"} and found.failures["reset"] >= 1
    else:
        assert found.failures == FAULTY[fault]


def test_executions_that_were_not_answered_in_time_are_counted(served: Desk) -> None:
    found = {name: each.duplicates for name, each in results_of(served).items()}
    for fault in ("late-answer", "wrong-identity", "truncated"):
        assert found[fault] == SHORT // 2, fault
    assert found["silent"] == 0  # it never began to generate
    assert found["killed"] >= 1  # it had begun


def test_the_killed_replica_was_killed_and_the_others_drained(served: Desk) -> None:
    healthy, killed = record_of(served, "killed").replicas
    assert (healthy.exit_code, killed.exit_code) == (0, -signal.SIGKILL)
    assert killed.rank is None and healthy.rank is not None
    for replica in record_of(served, "two").replicas:
        assert (replica.ready, replica.exit_code) == (True, 0)


def test_tokens_are_the_same_over_phases_and_replicas(served: Desk) -> None:
    sequences: dict[str, set[str]] = {}
    receipt = load_file(ServeReceipt, served.latest / "receipts" / "serve.json")
    for each in receipt.phases:
        for fate in each.fates:
            assert fate.tokens_sha256 is not None
            sequences.setdefault(fate.case, set()).add(fate.tokens_sha256)
    assert len(sequences) == REQUESTS
    assert all(len(found) == 1 for found in sequences.values())
    assert all(each.agreement == 1 for each in results_of(served).values())


def test_open_loop_arrivals_are_kept(served: Desk) -> None:
    found = results_of(served)["open"]
    assert (found.loop, found.answered, found.concurrency) == ("open", REQUESTS, None)
    order = json.loads((work_of(served) / "open" / "order.json").read_text())
    events = [json.loads(line) for line in (work_of(served) / "open" / "events.jsonl").open()]
    start = next(each["at"] for each in events if each["event"] == "measure")
    sends = [each["at"] - start for each in events if each["event"] == "send"]
    assert all(
        sent >= due - 0.01 for sent, due in zip(sorted(sends), order["arrivals_s"], strict=False)
    )


def work_of(desk: Desk) -> Path:
    return desk.latest / "work" / "archive" / "serving"


def test_decisions_and_page_speak_of_serving(served: Desk) -> None:
    results = load_file(Results, served.latest / "results.json")
    assert [(each.name, each.passed) for each in results.decisions] == [
        ("same-tokens", True), ("not-slower", True),
    ]  # fmt: skip
    page = (served.latest / "report" / "index.html").read_text()
    assert "one-of-two-stopped" in page and "16 refused" in page
    assert (served.latest / "report" / "figures" / "saturation.svg").exists()
    assert served.harness("verify", str(served.latest)).code == 0


def first_answer(members: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the first answer that the client wrote down in the phase 'two'."""
    path = members / "serving" / "two" / "events.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(next(row for row in rows if row.get("answer")))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def other_tokens(members: Path) -> None:
    first_answer(members, lambda row: row["answer"]["tokens"].reverse())


def no_answer(members: Path) -> None:
    first_answer(members, lambda row: row.update(answer=None))


def other_prompt(members: Path) -> None:
    path = members / "serving" / "two" / "order.json"
    value = json.loads(path.read_text())
    value["requests"][0]["tokens"].append(1)
    path.write_text(json.dumps(value))


def other_agreement(members: Path) -> None:
    path = members / "results.json"
    value = json.loads(path.read_text())
    value["serving"][1]["same_tokens"] -= 1
    path.write_text(json.dumps(value))


def other_weights(members: Path) -> None:
    path = members / "receipts" / "serve.json"
    value = json.loads(path.read_text())
    value["parameter_root"] = "0" * 64
    path.write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (None, ""),
        (other_tokens, "other tokens than the client took"),
        (no_answer, "other tokens than the client took"),
        (other_prompt, "not that of its case"),
        (other_agreement, "answers agree"),
        (other_weights, "other weights were served"),
    ],
)
def test_the_second_reading_of_what_was_served_finds(
    served: Desk, tmp_path: Path, change: Callable[[Path], None] | None, check: str
) -> None:
    members = tmp_path / "members"
    extract(served.latest / "evidence.tar.gz", members, expected_tar_sha256=None)
    if change is not None:
        change(members)
    found = check_served(load_plan(members / "plan.json").plan, members)
    assert {each.name for each in found.checks} >= {
        "served tokens in the receipt", "token agreement counted again", "weights of replicas",
    }  # fmt: skip
    assert bool(found.disagreements) is (change is not None)
    assert all(check in sentence for sentence in found.disagreements)


def test_no_process_of_ours_is_left(served: Desk) -> None:
    mark = str(served.latest).encode()
    left = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "cmdline").read_bytes():
                left.append(entry.name)
        except OSError:
            continue
    assert left == []


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


def events_in(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def test_client_and_operator_killed_in_a_phase_repeat_no_completed_request(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    slow = toy_with(tmp_path, TOY_TOKEN_SECONDS="0.01")
    desk = make_desk(
        **changes_of(serving=serving([phase("two", requests=16)], timeout_s=60.0)), trainer=slow
    )
    operator = subprocess.Popen(
        [sys.executable, "-m", "harness", "run", str(desk.plan), "--local"],
        cwd=desk.folder, env=desk.environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    host = desk.runs / "toy" / "latest" / "fleet" / "hosts" / "host-0"
    path = host / "out" / "serve.two.client" / "events.jsonl"
    wait_for(
        lambda: (
            sum(each["event"] == "end" for each in events_in(path)) >= 4
            or operator.poll() is not None
        )
    )
    operator.kill()
    operator.wait()
    started = host / "jobs" / "serve.two.client.1" / "started.json"
    os.kill(json.loads(started.read_text())["pid"], signal.SIGKILL)
    wait_for(lambda: (started.parent / "exit.json").exists())
    done_before = {each["request"] for each in events_in(path) if each.get("answer")}
    assert 4 <= len(done_before) < 16
    assert desk.run().code == 0
    found = results_of(desk)["two"]
    assert (found.outcome, found.answered, found.sessions) == ("passed", 16, 2), found.why
    fates = record_of(desk, "two").fates
    for fate in fates:
        assert fate.completed >= 1
        if fate.request in done_before:
            assert (len(fate.attempts), fate.executions) == (1, 1)
    interrupted = [fate for fate in fates if fate.attempts[0].outcome == "interrupted"]
    assert 1 <= len(interrupted) <= 2  # what was out at two at once, and it was answered later
    assert found.first_failures == 0


def test_a_phase_that_fails_stays_failed_and_the_study_goes_on(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(
        **changes_of(
            serving=serving([phase("one", 1, requests=SHORT)]),
            decisions=[decision("fast", "serving-token-agreement", "one", 0.5)],
        ),
        trainer=toy_with(tmp_path, TOY_SERVE="refuse"),
    )
    assert desk.run().code == 0
    found = results_of(desk)["one"]
    assert (found.outcome, found.answered) == ("failed", 0)
    assert "ended before it was ready" in found.why and "have the root" in found.why
    results = load_file(Results, desk.latest / "results.json")
    assert not results.decisions[0].passed
    assert "failed" in results.decisions[0].detail
    assert any("'one' failed" in sentence for sentence in results.limits)
    assert desk.run().code == 0
    assert results_of(desk)["one"] == found
