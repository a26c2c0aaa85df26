"""What is kept of work that had begun when a study had to end."""

from __future__ import annotations

from collections.abc import Sequence
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

    A rank without usable losses, or on a host that does not answer, is left out.
    """

    def act() -> Unfinished:
        kept = []
        for rank, host in enumerate(hosts):
            name = f"losses-{rank}.jsonl"
            local = study.work / "arms" / arm / name
            local.parent.mkdir(parents=True, exist_ok=True)
            try:
                outputs.fetch(host, f"{left.outs[-1]}/{name}", local)
                rows = whole_lines(local)
            except (BadInput, Waiting) as error:
                study.journal.note("unfinished/left-out", {"file": name, "why": str(error)})
                continue
            if rows:
                contract.write_atomic(local, rows)
                kept.append(study.store.put(local, name=f"arms/{arm}/{name}"))
        return Unfinished(name=arm, attempts=left.attempts, losses=tuple(kept))

    return study.journal.effect(
        f"collect/unfinished/{arm}", Unfinished, intent={"outs": list(left.outs)}, act=act,
        adopt=lambda: None,
    )  # fmt: skip


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
