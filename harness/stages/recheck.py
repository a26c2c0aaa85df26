"""recheck: what preflight checked between the hosts, once more after the arms.

The arms are done and their candidates stored, so a check that fails stops nothing here; it stands
in the receipt and is said in the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from harness.departure import departure_of
from harness.errors import Waiting
from harness.hosts.protocol import Host, Unreachable
from harness.receipts import Line, PreflightReceipt, ProvisionReceipt, RecheckReceipt
from harness.stages.machines import EXCEEDED, allowances, exceeded_line
from harness.stages.push import ready_hosts
from harness.stages.stamp import Stamp
from harness.stages.together import check_together
from harness.study import Receipts, Study


def recheck(study: Study, done: Receipts, stamp: Stamp) -> RecheckReceipt:
    """Check again. Raises Unreachable only when no host answers."""
    hosts = ready_hosts(study, done)
    lines = tuple(tried(hosts, _counters(study, done, hosts)))
    lines += tuple(tried(hosts, _together(study, done, hosts)))
    return RecheckReceipt(**stamp.close(), notes=notes_of(lines), lines=lines)


def _counters(study: Study, done: Receipts, hosts: tuple[Host, ...]) -> Iterator[Line]:
    before = done.of(PreflightReceipt).allowances
    for host in hosts if before else ():
        for seen in allowances(study, host, hosts):
            yield exceeded_line(before, seen)


def _together(study: Study, done: Receipts, hosts: tuple[Host, ...]) -> Iterator[Line]:
    device = done.of(PreflightReceipt).device
    departure = departure_of(study, done, study.fleet(done.of(ProvisionReceipt)))
    return check_together(
        study, done, hosts[: study.plan.workers], device, "recheck", departure.due
    )


def tried(hosts: tuple[Host, ...], looks: Iterator[Line]) -> Iterator[Line]:
    """The lines; one that says why, where the look itself failed. Raises Unreachable when no host
    answers."""
    try:
        yield from looks
    except Waiting as error:
        if isinstance(error, Unreachable) and not any(_answers(host) for host in hosts):
            raise
        yield Line(
            host=hosts[0].name if len(hosts) == 1 else "the hosts",
            check="check after the arms",
            observed=f"it could not be made: {error}".rstrip("."),
            required="as in preflight",
            ok=False,
        )


def _answers(host: Host) -> bool:
    with suppress(Unreachable):
        host.state("recheck")
        return True
    return False


def notes_of(lines: tuple[Line, ...]) -> tuple[str, ...]:
    """Sentences for the report: every check that is wrong, or one that all are right."""
    bad = [
        f"After the arms, {line.host}: {line.check}: {line.observed} (needed: {line.required})"
        for line in lines
        if not line.ok
    ]
    if bad:
        return tuple(bad)
    counted = any(line.check.startswith(EXCEEDED) and "+" in line.observed for line in lines)
    network = "no network allowance was exceeded" if counted else "no network allowances are kept"
    return (
        "Checked again after the arms: the weighted update and the all-reduce are right on "
        f"{len({line.host for line in lines})} host(s), {network} there",
    )
