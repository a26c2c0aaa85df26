"""A serving phase that has to leave: cut, with what was answered; never 'not run', never zero."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from harness.receipts import PhaseRecord, PreserveReceipt, ServeReceipt
from harness.results import PhaseResult, Results
from harness.strict import load_file
from tests.study.conftest import Desk, MakeDesk
from tests.study.test_faults_of_arms import pid_of, start, wait_for
from tests.study.test_incomplete import run_leaping
from tests.study.test_serving import changes_of, decision, phase, serving
from tests.toy_plan import toy_with

EVENTS = "toy/2*/fleet/hosts/host-0/out/serve.two.client/events.jsonl"
CLIENT = "toy/2*/fleet/hosts/host-0/jobs/serve.two.client.1/started.json"
SOME = "12"
"""Lines of events: some requests have an answer, most have not."""


def slow_desk(make_desk: MakeDesk, folder: Path) -> Desk:
    """Phases 'one', 'two', 'last'; an answer takes about two seconds."""
    phases = [phase("one", 1, requests=2), phase("two"), phase("last", 1, requests=2)]
    wanted = [
        decision("same-tokens", "serving-token-agreement", "two", 1.0),
        decision("not-slower", "serving-throughput-ratio", "two", 0.001, reference="one"),
    ]
    return make_desk(
        trainer=toy_with(folder, TOY_TOKEN_SECONDS="0.03"),
        **changes_of(serving=serving(phases, timeout_s=60.0, warmup_requests=1), decisions=wanted),
    )


def require_cut(desk: Desk) -> PhaseRecord:
    """The phase 'two' stands as cut everywhere, with exactly the answers that its client took."""
    receipt = load_file(ServeReceipt, desk.latest / "receipts" / "serve.json")
    assert receipt.ran and receipt.incomplete is not None
    assert [(each.name, each.outcome) for each in receipt.phases] == [
        ("one", "passed"), ("two", "cut"),
    ]  # fmt: skip
    record = receipt.phases[1]
    events = desk.latest / "work" / "archive" / "serving" / "two" / "events.jsonl"
    lines: list[dict[str, Any]] = [json.loads(line) for line in events.read_text().splitlines()]
    answered = {line["request"] for line in lines if line.get("answer")}
    assert answered == {fate.request for fate in record.fates if fate.tokens_sha256}
    assert 0 < len(answered) < len(record.fates) == 32

    results = load_file(Results, desk.latest / "results.json")
    shown: PhaseResult = results.serving[1]
    assert (shown.outcome, shown.answered, shown.uncounted) == ("cut", len(answered), False)
    assert f"cut when {len(answered)} of 32 requests had an answer" in shown.why
    assert results.incomplete is not None
    assert results.incomplete.not_decided == ("same-tokens", "not-slower")
    assert results.decisions == (), "half of a phase decides nothing"
    page = (desk.latest / "report" / "index.html").read_text()
    assert "CUT" in page
    assert f"{len(answered)} / 32" in page
    preserved = load_file(PreserveReceipt, desk.latest / "receipts" / "preserve.json")
    whole = {each.name for each in preserved.objects if each.ok}
    assert {"serving/two/events.jsonl", "serving/two/served-0.jsonl"} <= whole
    assert desk.harness("verify", str(desk.latest)).code == 0
    return record


def test_a_phase_at_the_point_of_no_return_is_cut_with_what_was_answered(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = slow_desk(make_desk, tmp_path)
    done = run_leaping(desk, EVENTS, LEAP_LINES=SOME)
    assert done.code == 4, done.err
    assert "two" in done.out and "cut when" in done.out
    record = require_cut(desk)
    assert [each.ready for each in record.replicas] == [True, True]
    assert all(each.rank is not None for each in record.replicas), "they were drained"
    assert desk.run().code == 4


def test_a_phase_that_nobody_came_back_to_in_time_is_cut_too(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = slow_desk(make_desk, tmp_path)
    process = start(desk)
    events = wait_for(EVENTS, desk)
    while events.read_bytes().count(b"\n") < int(SOME):
        assert process.poll() is None
    os.kill(
        pid_of(wait_for(CLIENT, desk)), signal.SIGSTOP
    )  # else it might come to its end meanwhile
    process.kill()
    process.communicate()
    done = run_leaping(desk, EVENTS)
    assert done.code == 4, done.err
    require_cut(desk)
