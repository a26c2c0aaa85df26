"""Whether hosts that run also pass AWS's status checks: what is impaired is not a host."""

from __future__ import annotations

from collections.abc import Callable

from harness.cloud import observe
from harness.cloud.clients import Aws
from harness.fleet.outputs import StackOutputs

CHECKS_S = 900.0
"""Checks begin after a host runs and take minutes (EC2 user guide, 'Status checks'). What is not
decided by then is left to the run, which waits for each host's own word."""
POLL_S = 10.0


def fault(aws: Aws, outputs: StackOutputs, say: Callable[[str], None]) -> str:
    """Wait for the checks of all hosts. The first host that failed them and how; '' for none."""
    ids = [host.instance_id for host in outputs.hosts]
    until, said = aws.clock.monotonic() + CHECKS_S, False
    while True:
        seen = observe.checks(aws, ids)
        for each in ids:
            if seen[each].verdict == "failed":
                one = seen[each]
                why = one.reason or f"instance {one.instance}, system {one.system}"
                return f"{each} is '{one.state}' and fails its status checks ({why})"
        waiting = [each for each in ids if seen[each].verdict != "ready"]
        if not waiting or aws.clock.monotonic() >= until:
            return ""
        if not said:
            say(f"waiting for the status checks of {', '.join(waiting)}")
            said = True
        aws.clock.sleep(POLL_S)
