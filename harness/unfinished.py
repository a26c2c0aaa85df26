"""What is kept of work that had begun when a study had to end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import outputs
from harness.departure import TimeToLeave
from harness.errors import BadInput, Waiting
from harness.hosts.protocol import Host
from harness.measuring.rows import LossLine
from harness.receipts import Unfinished
from harness.strict import load, read_plain
from harness.study import Study
from trainer import contract


def keep_unfinished(study: Study, arm: str, hosts: Sequence[Host], left: TimeToLeave) -> Unfinished:
    """Losses of an arm's last attempt into the store. Its logs are there already.

    What a host held that is gone for good is named as lost. Before the deadline, what a host does
    not give in time is named as missing; else nothing is left out: raises Unreachable.
    """

    def act() -> Unfinished:
        kept, missing = [], []
        gone = study.lost()
        for rank, host in enumerate(hosts):
            if host.name in gone:
                continue
            name = f"arms/{arm}/losses-{rank}.jsonl"
            local = study.work / name
            local.parent.mkdir(parents=True, exist_ok=True)
            try:
                outputs.fetch(host, f"{left.outs[-1]}/losses-{rank}.jsonl", local)
            except (BadInput, Waiting) as error:
                if isinstance(error, Waiting) and left.incomplete.because == "lost-host":
                    raise
                missing.append(f"{name}: {error}")
                continue
            if rows := whole_lines(local):
                contract.write_atomic(local, rows)
                kept.append(study.store.put(local, name=name))
        return Unfinished(
            name=arm,
            attempts=left.attempts,
            losses=tuple(kept),
            lost=tuple(_held(arm, hosts, left, gone)),
            missing=tuple(missing),
        )

    return study.journal.effect(
        f"collect/unfinished/{arm}", Unfinished, intent={"outs": list(left.outs)}, act=act,
        adopt=lambda: None,
    )  # fmt: skip


def _held(
    arm: str, hosts: Sequence[Host], left: TimeToLeave, gone: Mapping[str, str]
) -> Iterator[str]:
    """What hosts that are gone held of an arm: losses, and logs that were not fetched before."""
    stored = {log.name for attempt in left.attempts for log in attempt.logs}
    for rank, host in enumerate(hosts):
        if host.name not in gone:
            continue
        yield f"arms/{arm}/losses-{rank}.jsonl: {gone[host.name]}"
        for out in left.outs:
            log = f"logs/{out.removeprefix('out/')}-{host.name}.log"
            if log not in stored:
                yield f"{log}: {gone[host.name]}"


def whole_lines(path: Path) -> bytes:
    """The lines before the first one that a stopped trainer left torn or malformed."""
    kept = bytearray()
    for line in read_plain(path).split(b"\n"):
        try:
            load(LossLine, line, where=str(path))
        except BadInput:
            break
        kept += line + b"\n"
    return bytes(kept)
