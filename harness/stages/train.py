"""train: every arm, one after another; its candidate goes to the store at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness import jobs, machine, outputs, recipes
from harness.departure import TimeToLeave, departure_of
from harness.errors import BadInput, Refused
from harness.group_job import GroupJob
from harness.hosts.protocol import Host
from harness.measuring.rows import read_losses
from harness.plan.parent import PARENT
from harness.plan.recipe import Arm
from harness.prepared import Prepared
from harness.rank_bodies import TrainBody, body_of, read_rank_receipt
from harness.receipts import (
    ArmRecord,
    Candidate,
    CommitReceipt,
    Incomplete,
    PreflightReceipt,
    ProbeReceipt,
    ProvisionReceipt,
    PushReceipt,
    RankReceipt,
    TrainReceipt,
    Unfinished,
)
from harness.stages import between
from harness.stages.commit import require_commitment
from harness.stages.machines import read_ahead_lines
from harness.stages.push import ready_hosts
from harness.stages.stamp import Stamp
from harness.staging import keep_folder
from harness.store.protocol import Artifact
from harness.stored_checkpoints import Keeper
from harness.strict import load_file
from harness.study import Receipts, Study
from harness.unfinished import keep_unfinished


def train(study: Study, done: Receipts, stamp: Stamp) -> TrainReceipt:
    """Train all arms in the plan's order.

    Raises Refused when a commitment or hash does not hold, Waiting when an arm failed all its
    attempts. At the point of no return the receipt names the arms that have a candidate by then.
    """
    if not study.development:
        require_commitment(study, done.of(CommitReceipt))
    fleet = study.fleet(done.of(ProvisionReceipt))
    due = departure_of(study, done, fleet).due()
    if due and not _begun(study) and not study.development:
        return TrainReceipt(**stamp.close(), arms=(), incomplete=due)  # no host is needed for it
    hosts = ready_hosts(study, done)
    if departure_of(study, done, fleet).due(hosts) is None:
        jobs.require_deadlines(study, fleet)
    arms, unfinished, incomplete = _arms(study, done, hosts)
    notes: tuple[str, ...] = ()
    if fleet.kind == "local":
        notes = (
            "traffic caps are not enforced between workers of one computer",
            "bytes between workers of one computer are those of its loopback interface, other "
            "programs' traffic included",
        )
    notes += tuple(_continued(record) for record in arms if _resumed_from(record))
    for record in arms:
        notes += between.told(record.arm, record.attempts, record.lines)
    return TrainReceipt(
        **stamp.close(), notes=notes, arms=arms, unfinished=unfinished, incomplete=incomplete
    )


def _begun(study: Study) -> bool:
    return any(
        entry.kind == "intent" and entry.key.startswith("attempt/train/")
        for entry in study.journal.entries
    )


def _arms(
    study: Study, done: Receipts, hosts: tuple[Host, ...]
) -> tuple[tuple[ArmRecord, ...], tuple[Unfinished, ...] | None, Incomplete | None]:
    """Arms that have their candidate; what had begun when the rest had to be left, and why."""
    prepared = load_file(Prepared, study.prepared_path)
    arms: list[ArmRecord] = []
    for arm in study.plan.arms:
        group = hosts[: arm.workers]
        try:
            arms.append(_arm(study, done, arm, group, prepared))
        except TimeToLeave as left:
            if study.development:
                raise
            begun = (keep_unfinished(study, arm.name, group, left),) if left.attempts else None
            return tuple(arms), begun, left.incomplete
    return tuple(arms), None, None


def _resumed_from(record: ArmRecord) -> int:
    """Updates that the last attempt took over; 0: it began from the seed model."""
    return body_of(TrainBody, record.ranks[0]).resumed_from or 0


def _continued(record: ArmRecord) -> str:
    return (
        f"the arm '{record.arm}' was continued in attempt {record.attempts[-1].number} from a "
        f"checkpoint after update {_resumed_from(record)}; its timers 'process' and 'loop' are of "
        "that attempt alone"
    )


def _arm(
    study: Study, done: Receipts, arm: Arm, hosts: tuple[Host, ...], prepared: Prepared
) -> ArmRecord:
    provisioned = done.of(ProvisionReceipt)
    fleet = study.fleet(provisioned)
    recipe = recipes.train(
        study.plan,
        arm,
        microbatch=done.of(ProbeReceipt).microbatch[arm.name],
        device=done.of(PreflightReceipt).device,
        threads=machine.threads_of(study.plan, provisioned, arm.workers),
        transport=machine.transport_of(study.plan, provisioned),
    )
    departure = departure_of(study, done, fleet)
    stored = study.plan.recipe.checkpoints
    keeper = Keeper(study, arm.name)
    group = GroupJob(
        key=f"train/{arm.name}",
        recipe=recipe,
        hosts=hosts,
        pushed=done.of(PushReceipt).hosts,
        model=arm.start or "seed",
        limit_s=arm.limits.seconds,
        label=f"train {arm.name}",
        resumes=stored is not None,
        ready=lambda one, boots: between.before_attempt(study, done, one, boots),
        cap_bytes=int(arm.limits.traffic_gb * 10**9 / arm.workers),
        leave=lambda: departure.due(hosts),
        accept=lambda one: _accept(study, arm, one),
    )
    if stored and stored.off_host:
        group = replace(group, beside=keeper.look, before=keeper.bring_back)
    if fleet.kind != "local":
        group = replace(group, after=between.after_attempt)
    made, out = jobs.attempts(study, fleet, group, arm.attempts)
    kept = study.journal.find("outcome", f"collect/train/{arm.name}")
    if kept is None and (due := departure.due(hosts)) and due.because == "lost-host":
        raise TimeToLeave(due, made, (out,))

    def collect() -> ArmRecord:
        ranks = tuple(_rank(study, arm, host, out, rank) for rank, host in enumerate(hosts))
        losses = tuple(_losses(study, arm, host, out, rank) for rank, host in enumerate(hosts))
        _verify(study, arm, ranks, recipes.file_hash(recipe), prepared)
        disks = read_ahead_lines(study, hosts[:1], "staging")
        return ArmRecord(
            arm=arm.name,
            attempts=made,
            ranks=ranks,
            losses=losses,
            candidate=_candidate(study, arm, hosts[0], out, ranks[0]),
            lines=disks,
        )

    record = study.journal.effect(
        f"collect/train/{arm.name}", ArmRecord, intent={"out": out}, act=collect,
        adopt=lambda: None,
    )  # fmt: skip
    said = f"the arm '{arm.name}' ended and its candidate is stored"
    study.notices.tell("arm ended", said, about=arm.name)
    return record


def _accept(study: Study, arm: Arm, group: GroupJob) -> None:
    """Raises BadInput unless receipts, losses and candidate are whole and agree."""
    ranks = outputs.receipts(study, group, TrainBody)
    for rank, host in enumerate(group.hosts):
        local = _local(study, arm, f"losses-{rank}.jsonl")
        outputs.fetch(host, f"{group.out}/losses-{rank}.jsonl", local)
        read_losses(local, updates=study.plan.recipe.updates)
    roots = {body_of(TrainBody, receipt).parameter_root for receipt in ranks}
    if len(roots) != 1:
        raise BadInput(f"the ranks ended with {len(roots)} different parameter roots")
    outputs.candidate(group.hosts[0], f"{group.out}/candidate", roots.pop())


def _local(study: Study, arm: Arm, name: str) -> Path:
    folder = study.work / "arms" / arm.name
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def _rank(study: Study, arm: Arm, host: Host, out: str, rank: int) -> RankReceipt:
    local = _local(study, arm, f"receipt-{rank}.json")
    host.get(f"{out}/receipt-{rank}.json", local)
    return read_rank_receipt(local)


def _losses(study: Study, arm: Arm, host: Host, out: str, rank: int) -> Artifact:
    local = _local(study, arm, f"losses-{rank}.jsonl")
    host.get(f"{out}/losses-{rank}.jsonl", local)
    return study.store.put(local, name=f"arms/{arm.name}/losses-{rank}.jsonl")


def _verify(
    study: Study,
    arm: Arm,
    ranks: tuple[RankReceipt, ...],
    recipe_sha256: str,
    prepared: Prepared,
) -> None:
    bound = {each.name: each.sha256 for each in prepared.files}
    for receipt in ranks:
        where = f"arm '{arm.name}' rank {receipt.rank}"
        if receipt.source_sha256 != prepared.trainer_sha256:
            raise Refused("the trainer that ran is not the one that was bound", where=where)
        if receipt.recipe_sha256 != recipe_sha256:
            raise Refused("the recipe that ran is not the one that was given", where=where)
        for name, digest in receipt.inputs.items():
            if bound.get(name) != digest:
                raise Refused(f"the input {name} is not the one that was bound", where=where)
        start = prepared.parent_model if arm.start == PARENT else prepared.seed_model
        if start is None or receipt.model_root != start.parameter_root:
            what = arm.start or "seed"
            raise Refused(f"it did not start from the {what} model that was bound", where=where)
        if body_of(TrainBody, receipt).updates != study.plan.recipe.updates:
            raise Refused("it did not end at the predetermined update", where=where)


def _candidate(study: Study, arm: Arm, host: Host, out: str, receipt: RankReceipt) -> Candidate:
    folder = f"{host.work}/{out}/candidate"
    files = keep_folder(study, host, folder, label=arm.name)
    return Candidate(
        arm=arm.name, parameter_root=body_of(TrainBody, receipt).parameter_root, files=files
    )
