"""What a person does to a fleet half-way: Ctrl-C, a run given up, a deadline that is not proved."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.cloud.residue import residue
from harness.journal import read_entries
from harness.launch.engine import MARK
from harness.launch.fleets import fleet_places
from harness.launch.record import launched_ids, open_try, recorded_release, tries
from harness.onhost import processes
from tests.engine.fleets.workshop import ALIVE, DEADLINE_S, Ran, Workshop
from tests.engine.moto.call import Answer, Call
from tests.engine.moto.rule import Rule, World

LIMIT_S = 600.0
NEVER = "never"
"""No kill point has this mode: only the long waits are shortened (killed.py)."""


def interrupted(workshop: Workshop, ready: Callable[[], bool], verb: str, *more: str) -> Ran:
    """The command, with one Ctrl-C once `ready` says so."""
    with workshop.started(NEVER, verb, *more) as process:
        until = time.monotonic() + LIMIT_S
        while not ready() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    return Ran(process.returncode, out, err)


def killed_with_its_engine(workshop: Workshop) -> None:
    """SIGKILL for the command and for the engine while it launches: a lock and a pending operation
    are left."""
    with workshop.started(NEVER, "up") as process:
        until = time.monotonic() + LIMIT_S
        while not workshop.instances(*ALIVE) and time.monotonic() < until:
            time.sleep(0.05)
        process.kill()
        fleet, ended = workshop.admitted.fleet, 0
        for each in processes.everything():
            if processes.environment_of(each.pid).get(MARK) == fleet:
                os.kill(each.pid, signal.SIGKILL)
                ended += 1
        process.communicate(timeout=LIMIT_S)
    assert ended, "there was an engine to kill"


def test_ctrl_c_while_hosts_come_up_says_what_runs_and_up_goes_on(workshop: Workshop) -> None:
    stopped = interrupted(workshop, lambda: bool(workshop.instances(*ALIVE)), "up")
    assert stopped.code == 130, stopped.err + stopped.out
    alive = [host["InstanceId"] for host in workshop.instances(*ALIVE)]
    assert alive and f"{len(alive)} host(s) still run ({', '.join(alive)})" in stopped.err
    assert "an hour until" in stopped.err
    for verb in ("up", "down"):
        assert f"harness {verb} {workshop.plan} --runs {workshop.runs}" in stopped.err
    assert "Traceback" not in stopped.err

    late = workshop.killed(f"later:{0.6 * DEADLINE_S}", "up")
    assert late.code == 3 and "minutes are left before the deadline, too few" in late.err
    assert workshop.slots(*ALIVE) == [], "what costs money is gone before it is refused"

    killed_with_its_engine(workshop)
    assert len(workshop.slots(*ALIVE)) == 1
    workshop.killed(NEVER, "up").ok()
    assert workshop.slots(*ALIVE) == ["0", "1"]
    assert len(fleet_places(workshop.runs)) == 1
    results = [each.result for each in tries(workshop.entries)]
    assert results[0] == results[-2] == "interrupted" and results[-1] == "complete"


@dataclass
class SchedulesOff(Rule):
    """Somebody switches the schedules off: GetSchedule says DISABLED."""

    page: ClassVar[str] = "scheduler/latest/APIReference/API_GetSchedule.html"

    def after(self, call: Call, answer: Answer, world: World) -> Answer:
        if call.action.startswith("GET /schedules/"):
            return Answer(
                answer.status, answer.headers, answer.body.replace(b'"ENABLED"', b'"DISABLED"')
            )
        return answer


def test_failed_checks_launch_again_and_an_unproved_outer_deadline_ends_the_hosts(
    workshop: Workshop,
) -> None:
    """The first hosts become impaired while nobody looks: `up` was killed after its last check."""
    assert workshop.killed("effect:up/", "up").code == -signal.SIGKILL
    impaired = launched_ids(workshop.entries)[1]
    assert open_try(workshop.entries) is not None
    workshop.cloud.on("ChecksFail", ids={impaired}, times=0)
    workshop.cloud.shim.switched.append(SchedulesOff())
    ended = workshop.killed(NEVER, "up")
    first, second = tries(workshop.entries)
    assert (first.result, second.result) == ("unhealthy", "complete")
    assert f"{impaired} is 'running' and fails its status checks" in first.why
    assert not set(first.launched) & set(second.launched)

    assert ended.code == 5, ended.err + ended.out
    assert "is not proved within 5 minutes (it is DISABLED), so the hosts are" in ended.err
    assert workshop.slots(*ALIVE) == []
    assert residue(workshop.aws, workshop.admitted.fleet) == ()
    released = recorded_release(workshop.entries)
    assert released is not None and released.basis == "nothing to preserve"


def test_run_up_launches_and_a_run_that_is_given_up_ends_its_fleet(workshop: Workshop) -> None:
    """One command admits, launches and begins. Its guests never publish their keys; a person stops
    waiting and gives the evidence up."""

    def joined() -> bool:
        places = fleet_places(workshop.runs)
        return bool(places) and bool(places[-1].studies())

    plan = json.loads(workshop.plan.read_text())
    del plan["hosts"]["local"]  # as the two published studies: for AWS alone
    workshop.plan.write_text(json.dumps(plan))
    wrong = workshop.harness("run", "--up")
    assert wrong.code == 2 and "the seed model has 66 parameters" in wrong.err
    assert fleet_places(workshop.runs) == [], "nothing is launched for a plan that cannot begin"
    plan["model"]["parameters"] = 66
    workshop.plan.write_text(json.dumps(plan))
    stopped = interrupted(workshop, joined, "run", "--up")
    assert stopped.code == 130, stopped.err + stopped.out
    assert "Worst case (stack)" in stopped.out
    assert workshop.slots(*ALIVE) == ["0", "1"]
    assert "2 host(s) still run" in stopped.err and "an hour until" in stopped.err
    assert workshop.admitted.operator_cidr == "198.51.100.7/32"
    (study,) = workshop.place.studies()

    refused = workshop.harness("down")
    assert refused.code == 3 and "its evidence is not preserved" in refused.err
    assert workshop.slots(*ALIVE) == ["0", "1"]

    workshop.harness("down", "--abandon", "no time left").ok()
    assert workshop.slots(*ALIVE) == []
    assert residue(workshop.aws, workshop.admitted.fleet) == ()
    resources = workshop.resources()
    assert resources.state == "final" and resources.studies == (study.run,)
    things = {each.kind: each.gone_utc for each in resources.removed or ()}
    assert {"schedule", "schedule group", "security group", "VPC", "role"} <= set(things)
    assert all(things.values())
    entries = read_entries(workshop.runs / "toy" / study.run / "journal.jsonl")[0]
    committed = next(e.utc for e in entries if e.kind == "receipt" and e.key == "commit")
    assert committed < workshop.entries[0].utc, "committed before anything was admitted"
    release: dict[str, Any] = next(
        e.data for e in entries if e.kind == "receipt" and e.key == "release"
    )
    assert (release["basis"], release["why"]) == ("abandoned", "no time left")
    again = workshop.harness("run")
    assert again.code == 3 and "was abandoned" in again.err
