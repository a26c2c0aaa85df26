"""probe: a trial of every arm on the real hosts; what it chooses is frozen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness import jobs, machine, outputs, recipes
from harness.departure import Departure, TimeToLeave, departure_of, while_there_is_time
from harness.errors import Waiting
from harness.group_job import GroupJob
from harness.hosts.protocol import Host
from harness.plan import Plan
from harness.plan.recipe import Arm
from harness.rank_bodies import ProbeBody, body_of, read_rank_receipt
from harness.receipts import (
    Incomplete,
    PreflightReceipt,
    ProbeReceipt,
    ProvisionReceipt,
    PushReceipt,
    Trial,
)
from harness.stages.push import ready_hosts
from harness.stages.stamp import Stamp
from harness.study import Receipts, Study

TRIAL_UPDATES = 1
PACKED_TRIAL_UPDATES = 2
"""The first one compiles."""
TRIAL_S = 1800
LARGEST_ROW = {"cuda": 17408, "cpu": 2048}
"""Tokens of the first trial: about four rows an update of the batched study on one GPU; on a CPU
a row's activations must fit beside everything else."""


def probe(study: Study, done: Receipts, stamp: Stamp) -> ProbeReceipt:
    """Try each arm's microbatch; a smaller one is tried after a failure.

    Raises Waiting when no microbatch works. Past the point of no return the receipt holds the
    trials that were made by then, the stopped one too.
    """
    trials: list[Trial] = []
    chosen: dict[str, int] = {}
    incomplete: Incomplete | None = None
    try:
        while_there_is_time(study, done, lambda: _try_all(study, done, trials, chosen))
    except TimeToLeave as left:
        if study.development:
            raise
        incomplete = left.incomplete
    return ProbeReceipt(
        **stamp.close(), trials=tuple(trials), microbatch=chosen, incomplete=incomplete
    )


def _try_all(study: Study, done: Receipts, trials: list[Trial], chosen: dict[str, int]) -> None:
    """Fills `trials` and, by arm, `chosen`."""
    hosts = ready_hosts(study, done)
    departure = departure_of(study, done, study.fleet(done.of(ProvisionReceipt)))
    for arm in study.plan.arms:
        for size in sizes(study.plan, arm, done.of(PreflightReceipt).device):
            if due := departure.due():
                raise TimeToLeave(due)
            trials.append(_trial(study, done, arm, hosts[: arm.workers], size, departure))
            if trials[-1].ok:
                break
        if not trials[-1].ok:
            raise Waiting(
                f"no microbatch of arm '{arm.name}' runs on these hosts: {trials[-1].why}",
                where=str(study.folder / "logs"),
                next_command=study.again(),
            )
        chosen[arm.name] = trials[-1].microbatch


def sizes(plan: Plan, arm: Arm, device: str) -> list[int]:
    """Microbatches to try, largest first: documents, or tokens where the recipe packs them.

    Tokens fall by a quarter a step, and not below the longest document there may be.
    """
    recipe, share = plan.recipe, plan.recipe.global_batch // arm.workers
    if arm.microbatch:
        return [arm.microbatch if recipe.packed else min(arm.microbatch, share)]
    if recipe.packed is None:
        return list(_falling(share, 1, lambda size: (size + 1) // 2))
    least = recipe.context_tokens
    return list(_falling(max(LARGEST_ROW[device], least), least, lambda size: size * 3 // 4))


def _falling(first: int, last: int, smaller: Callable[[int], int]) -> Iterator[int]:
    size = first
    while size > last:
        yield size
        size = smaller(size)
    yield last


def _accept(study: Study, group: GroupJob) -> None:
    outputs.receipts(study, group, ProbeBody)


def _trial(
    study: Study, done: Receipts, arm: Arm, hosts: tuple[Host, ...], microbatch: int,
    departure: Departure,
) -> Trial:  # fmt: skip
    provisioned = done.of(ProvisionReceipt)
    fleet = study.fleet(provisioned)
    updates = PACKED_TRIAL_UPDATES if study.plan.recipe.packed else TRIAL_UPDATES
    group = GroupJob(
        key=f"probe/{arm.name}-{microbatch}/1",
        recipe=recipes.probe(
            study.plan,
            arm,
            microbatch=microbatch,
            device=done.of(PreflightReceipt).device,
            threads=machine.threads_of(study.plan, provisioned, arm.workers),
            trial_updates=min(study.plan.recipe.updates, updates),
            transport=machine.transport_of(study.plan, provisioned),
        ),
        hosts=hosts,
        pushed=done.of(PushReceipt).hosts,
        model=arm.start or "seed",
        limit_s=TRIAL_S,
        label=f"probe {arm.name}, microbatch {microbatch}",
        heartbeat=False,
        leave=departure.due,
        accept=lambda one: _accept(study, one),
    )
    attempt = jobs.run_group(study, fleet, group)
    if attempt.outcome != "done":
        return Trial(arm=arm.name, microbatch=microbatch, ok=False, why=attempt.reason)
    bodies = []
    for rank, host in enumerate(hosts):
        local = study.work / group.job / f"receipt-{rank}.json"
        local.parent.mkdir(parents=True, exist_ok=True)
        host.get(f"{group.out}/receipt-{rank}.json", local)
        bodies.append(body_of(ProbeBody, read_rank_receipt(local)))
    out_of_memory = any(body.out_of_memory for body in bodies)
    return Trial(
        arm=arm.name,
        microbatch=microbatch,
        ok=not out_of_memory,
        seconds_per_update=max(body.seconds_per_update for body in bodies),
        tokens_per_s=sum(body.tokens_per_s for body in bodies),
        peak_memory_bytes=max(body.peak_memory_bytes for body in bodies),
        why="out of memory" if out_of_memory else "",
    )
