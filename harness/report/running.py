"""Tables of how it ran: execution, attempts, probe trials, stage times, predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from harness.display import words
from harness.receipts import RECEIPTS, ProbeReceipt, ServeReceipt, StageName, Timers, TrainReceipt
from harness.report.evidence import AFTER_SEAL, Evidence
from harness.report.table import Cell, Table, Value, absent, cell, row
from harness.results import ArmResult

TRAIN = "receipt train"
Shown = tuple[Value, str | None]
"""A value and its text; None where it was not measured."""


def _timer(pick: Callable[[Timers], float | None]) -> Callable[[ArmResult], Shown]:
    return lambda arm: _seconds(pick(arm.timers))


def _seconds(value: float | None) -> Shown:
    return value, None if value is None else words.seconds(value)


def _bytes(value: int) -> Shown:
    return value, words.decimal_bytes(value)


def _memory(arm: ArmResult) -> Shown:
    size = words.binary_bytes(arm.peak_memory_bytes)
    return arm.peak_memory_bytes, f"{size} ({arm.peak_memory_of})"


_MEASUREMENTS: tuple[tuple[str, Callable[[ArmResult], Shown], str], ...] = (
    ("workers", lambda a: (a.workers, None), ""),
    ("exchange", lambda a: (a.exchange, None), ""),
    ("corpus", lambda a: (a.corpus, None), ""),
    ("microbatch", lambda a: (a.microbatch, None), "documents; tokens where the plan packs them"),
    ("updates", lambda a: (a.updates, None), ""),
    ("sum of updates", _timer(lambda t: t.update_sum), "leaves out data loading between updates"),
    ("median update", _timer(lambda t: t.update_median), "device synchronised"),
    ("active time", _timer(lambda t: t.active), "first update's start to last update's end"),
    ("active time and checkpoint", _timer(lambda t: t.active_plus_checkpoint),
     "until the candidate is on disk"),
    ("training loop", _timer(lambda t: t.loop),
     "through the final digest; leaves out start-up and model load"),
    ("start-up and load", _timer(lambda t: t.load), "process start until the loop"),
    ("process", _timer(lambda t: t.process),
     "leaves out interpreter exit, provisioning, evaluation and backup"),
    ("process group, wall", lambda a: _seconds(a.wall_seconds), "as the supervisor saw it"),
    ("allocated device time", lambda a: _seconds(a.allocated_seconds),
     "summed over ranks, whole process"),
    ("tokens", lambda a: (a.tokens, words.count(a.tokens)), "trained on, padding left out"),
    ("targets", lambda a: (a.targets, words.count(a.targets)), "response tokens"),
    ("weighted targets", lambda a: (a.weighted_targets, f"{a.weighted_targets:,.1f}"), ""),
    ("speed", lambda a: (a.tokens_per_s, f"{words.rate(a.tokens_per_s)} tokens/s"), ""),
    ("sent, all hosts", lambda a: _bytes(a.sent_bytes),
     "whole-host counters, management traffic included"),
    ("received, all hosts", lambda a: _bytes(a.received_bytes),
     "the same traffic seen from the other side"),
    ("sent by the exchange", lambda a: _bytes(a.exchange_sent_bytes),
     "counted by the exchange, summed over ranks"),
    ("peak memory", _memory, "largest rank"),
    ("first loss", lambda a: (a.first_loss, words.loss(a.first_loss)), ""),
    ("final loss", lambda a: (a.final_loss, words.loss(a.final_loss)), ""),
    ("ranks agree", lambda a: (a.ranks_agree, "yes" if a.ranks_agree else "no"),
     "same parameter root"),
)  # fmt: skip


def arms_of(evidence: Evidence) -> tuple[ArmResult, ...]:
    """Arms as measured again; as results.json has them where that cannot be done."""
    if evidence.measurements is None:
        return evidence.results.arms
    return tuple(evidence.measurements.arms.values())


def execution(evidence: Evidence) -> Table:
    """What every arm did and took."""
    arms = {arm.name: arm for arm in arms_of(evidence)}
    names = evidence.plan.arm_names
    columns = ("measurement", *names)
    if not arms:
        return absent("execution", "Execution", "no arm was trained", columns)
    rows = []
    for header, show, note in _MEASUREMENTS:
        shown = (show(arms[name]) if name in arms else (None, None) for name in names)
        rows.append(row(header, [cell(v, text, source=TRAIN) for v, text in shown], note=note))
    return Table("execution", "Execution", columns, tuple(rows),
        note="Timers are the slowest rank's. Each says what it leaves out.")  # fmt: skip


def attempts(evidence: Evidence) -> Table:
    """Every start of an arm, the failed ones too."""
    columns = ("arm, attempt", "outcome", "seconds", "why")
    receipt = evidence.receipt(TrainReceipt)
    if receipt is None:
        return absent("attempts", "Attempts", "no arm was started", columns)
    begun = [(record.arm, record.attempts) for record in receipt.arms]
    begun += [(one.name, one.attempts) for one in receipt.unfinished or ()]
    rows = tuple(
        row(
            f"{arm}, {attempt.number}",
            (
                cell(attempt.outcome, source=TRAIN),
                cell(attempt.seconds, words.seconds(attempt.seconds), source=TRAIN),
                cell(attempt.reason, source=TRAIN),
            ),
        )
        for arm, made in begun
        for attempt in made
    )
    return Table("attempts", "Attempts", columns, rows, words=frozenset({"outcome", "why"}))


def development(evidence: Evidence) -> Table:
    """Runs of `harness develop`, which score development cases before anything is committed."""
    columns = ("run", "started", "development cases, correct")
    if not evidence.development:
        return absent("development", "Development runs", "none is in the record", columns)
    source = "development.json"
    rows = []
    for run in evidence.development:
        counts = (f"{m.name} {m.overall.correct} / {m.overall.cases}" for m in run.models)
        started = cell(run.started_utc, words.utc(run.started_utc), source=source)
        rows.append(row(run.run, (started, cell(", ".join(counts), source=source))))
    return Table("development", "Development runs", columns, tuple(rows),
        note="Each is an attempt in the record. Test and retention cases are not scored in them.",
        words=frozenset({"development cases, correct"}))  # fmt: skip


def trials(evidence: Evidence) -> Table:
    """Probe trials, the failed and slower ones too."""
    columns = ("arm, microbatch", "outcome", "an update", "tokens/s", "peak memory", "why")
    receipt = evidence.receipt(ProbeReceipt)
    if receipt is None or not receipt.trials:
        return absent("trials", "Probe trials", "no trial was made", columns)
    source = "receipt probe"
    rows = []
    for t in receipt.trials:
        chosen = t.ok and receipt.microbatch.get(t.arm) == t.microbatch
        cells = (
            cell(t.ok, "chosen" if chosen else "worked" if t.ok else "failed", source=source),
            _measured(t.seconds_per_update, words.seconds, source),
            _measured(t.tokens_per_s, words.rate, source),
            _measured(t.peak_memory_bytes, words.binary_bytes, source),
            cell(t.why, source=source),
        )
        rows.append(row(f"{t.arm}, {t.microbatch}", cells))
    return Table(
        "trials", "Probe trials", columns, tuple(rows), words=frozenset({"outcome", "why"})
    )


N = TypeVar("N", int, float)


def _measured(value: N | None, show: Callable[[N], str], source: str) -> Cell:
    """A figure of a trial; one that failed may have none."""
    if value is None:
        return cell("not measured", source=source)
    return cell(value, show(value), source=source)


def stages(evidence: Evidence) -> Table:
    """Seconds of every stage."""
    rows = tuple(row(stage, (_stage(evidence, stage),)) for stage in RECEIPTS if stage != "report")
    return Table("stages", "Stages", ("stage", "time"), rows,
        note="Monotonic seconds of the attempt that completed the stage.")  # fmt: skip


def _stage(evidence: Evidence, stage: StageName) -> Cell:
    receipt = evidence.receipts.get(stage)
    if isinstance(receipt, ServeReceipt) and not receipt.ran:
        return cell(None, source=f"receipt {stage}")
    if receipt is not None:
        return cell(receipt.seconds, words.seconds(receipt.seconds), source=f"receipt {stage}")
    if stage in AFTER_SEAL and evidence.closing is not None:
        seconds = evidence.closing.stages.get(stage)
        if seconds is None:
            return cell("not recorded", source="closing.json")
        return cell(seconds, words.seconds(seconds), source="closing.json")
    seconds = evidence.results.stages.get(stage)
    return cell(*_seconds(seconds), source="results.json")


def predictions(evidence: Evidence) -> Table:
    """What the check before the run predicted, beside what was observed."""
    columns = ("what", "predicted", "observed", "observed / predicted")
    found = evidence.results.predicted
    if not found:
        return absent("predictions", "Predicted and observed", "nothing was predicted", columns)
    rows = []
    for p in found:
        ratio = p.observed_s / p.predicted_s if p.observed_s is not None and p.predicted_s else None
        cells = (
            cell(p.predicted_s, words.seconds(p.predicted_s), source=p.source)
            if p.predicted_s is not None
            else cell("not predicted", source=p.source),
            cell(*_seconds(p.observed_s), source="results.json"),
            cell(
                "" if ratio is None else ratio,
                None if ratio is None else f"{ratio:.2f}x",
                source="results.json",
            ),
        )
        rows.append(row(p.what, cells))
    return Table("predictions", "Predicted and observed", columns, tuple(rows))
