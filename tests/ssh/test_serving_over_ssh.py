"""Serving phases on two sshd hosts: a replica on each, the client on the first."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.ssh.conftest import Rack
from tests.ssh.test_faults import ended, start, wait_for
from tests.study.conftest import make_desk_in
from tests.study.test_serving import (
    REQUESTS,
    changes_of,
    phase,
    record_of,
    results_of,
    serving,
)
from tests.toy_plan import toy_with

LIMIT_S = 240.0


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_32_requests_over_two_hosts_while_sshd_is_killed(rack: Rack, tmp_path: Path) -> None:
    """sshd of the client's host dies in the first phase and comes back: no request is lost, none
    is repeated. In the second phase the last host's replica is stopped."""
    phases: list[dict[str, Any]] = [phase("two"), phase("one-of-two-stopped", fault="stopped")]
    desk = make_desk_in(
        tmp_path,
        **changes_of(serving=serving(phases, timeout_s=60.0)),
        trainer=toy_with(tmp_path, TOY_TOKEN_SECONDS="0.002"),
    )
    process = start(rack, desk)
    events = wait_for(rack, 0, "out/serve.two.client/events.jsonl")
    until = time.monotonic() + LIMIT_S
    while lines_in(events) < 20 and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.05)
    rack.machines[0].stop()
    time.sleep(1)
    rack.machines[0].start()
    ended(process)

    found = results_of(desk)
    for name in ("two", "one-of-two-stopped"):
        assert (found[name].outcome, found[name].why) == ("passed", ""), name
        assert (found[name].answered, found[name].requests) == (REQUESTS, REQUESTS)
        assert found[name].agreement == 1
    assert (found["two"].duplicates, found["two"].first_failures) == (0, 0)
    stopped = found["one-of-two-stopped"]
    assert (stopped.first_failures, stopped.retries_answered) == (16, 16)
    order = json.loads(
        (desk.latest / "work" / "archive" / "serving" / "two" / "order.json").read_text()
    )
    assert [each["address"] for each in order["replicas"]] == [
        machine.address for machine in rack.machines
    ], "each replica is reached at its host's own address"
    records = record_of(desk, "two").replicas
    assert [(each.host, each.exit_code) for each in records] == [("host-0", 0), ("host-1", 0)]
    assert all(each.served is not None and each.log is not None for each in records)
