"""probe: a trial of every arm on the real hosts; what it chooses is frozen."""

from __future__ import annotations

from harness import jobs, machine, outputs, recipes
from harness.errors import Waiting
from harness.hosts.protocol import Host
from harness.plan.recipe import Arm
from harness.rank_bodies import ProbeBody, body_of, read_rank_receipt
from harness.receipts import (
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
TRIAL_S = 1800


def probe(study: Study, done: Receipts, stamp: Stamp) -> ProbeReceipt:
    """Try each arm's microbatch; a smaller one is tried after a failure.

    Raises Waiting when no microbatch works.
    """
    hosts = ready_hosts(study, done)
    trials: list[Trial] = []
    chosen: dict[str, int] = {}
    for arm in study.plan.arms:
        tried = _arm(study, done, arm, hosts[: arm.workers])
        trials += tried
        if not tried[-1].ok:
            raise Waiting(
                f"no microbatch of arm '{arm.name}' runs on these hosts: {tried[-1].why}",
                where=str(study.folder / "logs"),
                next_command=study.again(),
            )
        chosen[arm.name] = tried[-1].microbatch
    return ProbeReceipt(**stamp.close(), trials=tuple(trials), microbatch=chosen)


def _arm(study: Study, done: Receipts, arm: Arm, hosts: tuple[Host, ...]) -> list[Trial]:
    share = study.plan.recipe.global_batch // arm.workers
    sizes = [arm.microbatch] if arm.microbatch else _halves(share)
    trials: list[Trial] = []
    for size in sizes:
        trials.append(_trial(study, done, arm, hosts, min(size, share)))
        if trials[-1].ok:
            break
    return trials


def _halves(share: int) -> list[int]:
    sizes = [share]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


def _accept(study: Study, group: jobs.GroupJob) -> None:
    outputs.receipts(study, group, ProbeBody)


def _trial(
    study: Study, done: Receipts, arm: Arm, hosts: tuple[Host, ...], microbatch: int
) -> Trial:
    provisioned = done.of(ProvisionReceipt)
    fleet = study.fleet(provisioned)
    group = jobs.GroupJob(
        key=f"probe/{arm.name}-{microbatch}/1",
        recipe=recipes.probe(
            study.plan,
            arm,
            microbatch=microbatch,
            device=done.of(PreflightReceipt).device,
            threads=machine.threads_of(study.plan, provisioned, arm.workers),
            trial_updates=TRIAL_UPDATES,
        ),
        hosts=hosts,
        pushed=done.of(PushReceipt).hosts,
        model="seed",
        limit_s=TRIAL_S,
        label=f"probe {arm.name}, microbatch {microbatch}",
        heartbeat=False,
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
