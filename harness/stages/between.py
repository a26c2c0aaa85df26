"""Before and after every attempt of an arm: the same boot as before, disks set for training.

A host that booted since it was last looked at is brought to the bound state again, every byte of
it compared, before anything starts there; what is not as it was pushed stops the run.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress

from harness import source
from harness.errors import Waiting
from harness.group_job import GroupJob
from harness.hosts.protocol import Host, Unreachable
from harness.prepared import Prepared
from harness.receipts import Attempt, Line, PrepareReceipt, ProvisionReceipt, PushReceipt
from harness.stages.machines import gpu_memory_lines, read_ahead_lines
from harness.stages.push import bind, find_environment
from harness.strict import load_file
from harness.study import Receipts, Study

BOOT = "boot"
LEAST_FREE_BYTES = 1 << 20
"""With less than this neither logs nor heartbeats can be written for long."""


def before_attempt(
    study: Study, done: Receipts, group: GroupJob, boots: dict[str, str]
) -> tuple[Line, ...]:
    """Boot and read-ahead of every host. Raises Waiting when a host that booted is not as it was
    pushed."""
    lines = tuple(boot_line(study, done, host, boots[host.name]) for host in group.hosts)
    if group.recipe["device"] == "cuda":
        lines += tuple(gpu_memory_lines(group.hosts))
    return lines + read_ahead_lines(study, group.hosts, "training")


def boot_line(study: Study, done: Receipts, host: Host, boot: str) -> Line:
    """The host's boot beside the one that it was provisioned with; another one is made good."""
    facts = next(each for each in done.of(ProvisionReceipt).hosts if each.name == host.name)
    if boot == facts.boot_id:
        return _boot(host, "the same boot")
    restored = _restore(study, done, host, boot)
    return _boot(host, f"another boot since it was provisioned; {restored}")


def _boot(host: Host, observed: str, *, ok: bool = True) -> Line:
    return Line(
        host=host.name,
        check=BOOT,
        observed=observed,
        required="the same boot, or everything as it was pushed",
        ok=ok,
    )


def _restore(study: Study, done: Receipts, host: Host, boot: str) -> str:
    """Everything that was pushed is there once more, compared by its hashes; in words."""
    known = next(each for each in done.of(PushReceipt).hosts if each.host == host.name)
    prepared = load_file(Prepared, study.prepared_path)
    tree = source.gather(study.loaded, study.work / "source")
    now = bind(
        study, host, tree, prepared, done.of(PrepareReceipt), key=f"reboot/{boot}/{host.name}"
    )
    seen = find_environment(study, host, tree)  # looked at again, whatever the journal holds
    changed = _changed(known.environment_manifest, seen.manifest)
    if changed:
        raise Waiting(
            f"booted again, and its environment is not the one that was pushed ({changed})",
            where=host.name,
            next_command=study.again("--abandon", "why"),
        )
    return f"trainer, model, inputs and environment compared, {now.moved_bytes} bytes brought again"


def _changed(before: dict[str, str], now: dict[str, str]) -> str:
    names = sorted(name for name in before | now if before.get(name) != now.get(name))
    return ", ".join(
        f"{name} {before.get(name, 'absent')} -> {now.get(name, 'absent')}" for name in names[:5]
    )


def after_attempt(group: GroupJob, boots: dict[str, str]) -> tuple[Line, ...]:
    """What became wrong with hosts since the attempt began: booted again, disk full. One that does
    not answer has no line: the attempt says that."""
    found = []
    for host in group.hosts:
        with suppress(Unreachable):
            facts = host.facts()
            if facts.boot_id != boots[host.name]:
                found.append(_boot(host, "it booted again while the attempt ran", ok=False))
            if facts.disk_free_bytes < LEAST_FREE_BYTES:
                found.append(_full(host, facts.disk_free_bytes))
    return tuple(found)


def _full(host: Host, free_bytes: int) -> Line:
    return Line(
        host=host.name,
        check="disk",
        observed=f"its disk is full ({free_bytes} bytes are free): {os.strerror(errno.ENOSPC)}",
        required=f"at least {LEAST_FREE_BYTES} bytes",
        ok=False,
    )


def told(arm: str, attempts: Sequence[Attempt], after: Sequence[Line]) -> tuple[str, ...]:
    """Sentences about what was not as it should be, and about every boot; for the report."""
    said = []
    for attempt in attempts:
        for line in attempt.lines:
            if not line.ok or (line.check == BOOT and not line.observed.startswith("the same")):
                said.append(f"{line.host}, arm '{arm}', attempt {attempt.number}: {_words(line)}")
    said += [f"{line.host}, after arm '{arm}': {_words(line)}" for line in after if not line.ok]
    return tuple(said)


def _words(line: Line) -> str:
    if line.check == BOOT:
        return line.observed
    return f"{line.check}: {line.observed} where {line.required} was meant"
