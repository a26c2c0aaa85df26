"""What ranks check together on the real hosts: the weighted update and an all-reduce."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from harness import jobs, machine, outputs, recipes
from harness.group_job import GroupJob
from harness.hosts.protocol import Host
from harness.rank_bodies import CheckBody, body_of, read_rank_receipt
from harness.receipts import Incomplete, Line, ProvisionReceipt, PushReceipt
from harness.study import Receipts, Study

CHECK_S = 900
CHECK_ATTEMPTS = 2
UPDATE_ERROR = 1e-4
"""Largest difference of the weighted update from the single-process one (FP32)."""


def check_together(
    study: Study,
    done: Receipts,
    hosts: tuple[Host, ...],
    device: Literal["cpu", "cuda"],
    stage: str,
    leave: Callable[[], Incomplete | None] = lambda: None,
) -> Iterator[Line]:
    """Two lines a host. Raises Waiting when the check does not run, or when `leave` ends it."""
    provisioned = done.of(ProvisionReceipt)
    threads = machine.threads_of(study.plan, provisioned, len(hosts))
    group = GroupJob(
        key=f"{stage}/check",
        recipe=recipes.check(
            study.plan,
            device=device,
            threads=threads,
            transport=machine.transport_of(study.plan, provisioned),
            workers=len(hosts),
        ),
        hosts=hosts,
        pushed=done.of(PushReceipt).hosts,
        model="seed",
        limit_s=CHECK_S,
        label="weighted-update check",
        heartbeat=False,
        leave=leave,
        accept=lambda one: _accept(study, one),
    )
    _, out = jobs.attempts(study, study.fleet(provisioned), group, CHECK_ATTEMPTS)
    for rank, host in enumerate(hosts):
        local = study.work / f"{stage}-check-{rank}.json"
        host.get(f"{out}/receipt-{rank}.json", local)
        yield from _lines(host, body_of(CheckBody, read_rank_receipt(local)), len(hosts))


def _accept(study: Study, group: GroupJob) -> None:
    outputs.receipts(study, group, CheckBody)


def _lines(host: Host, body: CheckBody, workers: int) -> Iterator[Line]:
    yield Line(
        host=host.name,
        check="all-reduce",
        observed=f"{body.workers_seen} workers, sum {'right' if body.all_reduce_ok else 'wrong'}",
        required=f"{workers} workers",
        ok=body.all_reduce_ok and body.workers_seen == workers,
    )
    error = body.weighted_update_max_error
    yield Line(
        host=host.name,
        check="weighted update",
        observed=f"{error:.1e} from the plain calculation",
        required=f"at most {UPDATE_ERROR:.0e}",
        ok=error <= UPDATE_ERROR,
    )
