"""One arm's execution in numbers, from the receipts of its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.errors import BadInput
from harness.measuring.rows import read_losses
from harness.plan.recipe import Arm
from harness.prepared import TargetCounts
from harness.rank_bodies import TrainBody, body_of
from harness.receipts import ArmRecord, Attempt, RankReceipt, Timers
from harness.results import ArmResult

LOOPBACK = "lo"


def measure_arm(
    folder: Path, arm: Arm, record: ArmRecord, targets: TargetCounts, *, microbatch: int
) -> ArmResult:
    """One arm's figures; `folder` holds its losses-0.jsonl.

    Tokens and targets are those of the prepared schedule, all workers together. Raises BadInput
    when the ranks are not those of the arm, or when no attempt is done.
    """
    where = f"arm '{arm.name}'"
    ranks = _ranks_in_order(record.ranks, arm.workers, where)
    bodies = [body_of(TrainBody, rank) for rank in ranks]
    timers = slowest(rank.timers for rank in ranks)
    losses = read_losses(folder / "losses-0.jsonl", updates=bodies[0].updates)
    sent, received = whole_host_bytes(ranks)
    roots = {body.parameter_root for body in bodies}
    return ArmResult(
        name=arm.name,
        workers=arm.workers,
        exchange=arm.exchange.kind,
        corpus=arm.corpus,
        microbatch=microbatch,
        attempts=len(record.attempts),
        updates=bodies[0].updates,
        timers=timers,
        wall_seconds=done_attempt(record.attempts, where).seconds,
        allocated_seconds=sum(rank.timers.allocated for rank in ranks),
        tokens=targets.tokens,
        targets=targets.targets,
        weighted_targets=targets.weighted_targets,
        tokens_per_s=_rate(targets.tokens, timers),
        peak_memory_bytes=max(rank.peak_memory_bytes for rank in ranks),
        peak_memory_of=ranks[0].peak_memory_of,
        sent_bytes=sent,
        received_bytes=received,
        exchange_sent_bytes=sum(body.exchange_sent_bytes for body in bodies),
        first_loss=losses[0],
        final_loss=losses[-1],
        parameter_root=record.candidate.parameter_root,
        ranks_agree=roots == {record.candidate.parameter_root},
    )


def slowest(timers: Iterable[Timers]) -> Timers:
    """Every timer of its slowest rank, in seconds; one that a rank did not report is left out."""
    every = list(timers)
    found: dict[str, float] = {}
    for name in Timers.model_fields:
        values = [getattr(one, name) for one in every]
        if all(value is not None for value in values):
            found[name] = max(values)
    return Timers(**found)


def whole_host_bytes(ranks: Sequence[RankReceipt]) -> tuple[int, int]:
    """(transmitted, received) bytes of all hosts of an arm, management traffic included.

    On one computer every rank reads the same loopback counter, so rank 0's stands for all.
    """
    shared = all(rank.traffic.interface == LOOPBACK for rank in ranks)
    counted = ranks[:1] if shared else ranks
    return (
        sum(rank.traffic.sent_bytes for rank in counted),
        sum(rank.traffic.received_bytes for rank in counted),
    )


def done_attempt(attempts: Sequence[Attempt], where: str) -> Attempt:
    """The attempt that the results come from. Raises BadInput when none is done."""
    for attempt in reversed(attempts):
        if attempt.outcome == "done":
            return attempt
    raise BadInput("has no attempt that was done", where=where)


def _ranks_in_order(
    ranks: Sequence[RankReceipt], workers: int, where: str
) -> tuple[RankReceipt, ...]:
    found = sorted(ranks, key=lambda rank: rank.rank)
    numbers = [rank.rank for rank in found]
    if numbers != list(range(workers)):
        raise BadInput(f"has receipts of ranks {numbers}, and {workers} worker(s)", where=where)
    return tuple(found)


def _rate(tokens: int, timers: Timers) -> float:
    seconds = timers.process if timers.active is None else timers.active
    return tokens / seconds if seconds > 0 else 0.0
