"""Following a group of jobs to its end: siblings of what fails are ended, every log is kept.

A host that does not answer is not a host that failed: its job goes on, and only when it stays out
of reach for its patience while a sibling's host answers does it count as lost. When no host
answers, it is this side that is cut off, and nothing is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from harness.clock import Clock
from harness.errors import BadInput, Waiting
from harness.group_job import GroupJob
from harness.heartbeats import Pulse, read_heartbeat
from harness.hosts.protocol import Host, JobState, Unreachable
from harness.receipts import Attempt
from harness.store.protocol import Artifact
from harness.study import Study
from trainer import contract

POLL_S = 0.2
LOG_TAIL_BYTES = 2000
SAMPLER_S = 15.0
LEAVES = "stopped: only preserving still fits before the deadline"
LOG_HEAD_BYTES = 16 << 20
MOST_LOG_BYTES = 64 << 20
PIECE = 4 << 20


@dataclass
class Reach:
    """Since when each host has not answered."""

    clock: Clock
    _since: dict[str, tuple[float, str]] = field(default_factory=dict)

    def state(self, host: Host, job_id: str) -> JobState | None:
        """The job's state; None while the host does not answer."""
        try:
            found = host.state(job_id)
        except Unreachable as error:
            self._since.setdefault(host.name, (self.clock.monotonic(), error.what))
            return None
        self._since.pop(host.name, None)
        return found

    def lost(self, hosts: Sequence[Host]) -> dict[str, str]:
        """Why hosts count as lost, by name; empty while any host still may only be late.

        Raises Unreachable when no host has answered for its patience.
        """
        now = self.clock.monotonic()
        over = {
            host.name: f"out of reach for {now - self._since[host.name][0]:.0f} s "
            f"({self._since[host.name][1]})"
            for host in hosts
            if host.name in self._since and now - self._since[host.name][0] >= host.patience_s
        }
        if over and len(self._since) == len(hosts):
            raise Unreachable(
                "no host of this job answers, so nothing is known to have failed and its ranks "
                f"may go on; {'; '.join(f'{name}: {why}' for name, why in over.items())}",
            )
        return over


def follow(study: Study, group: GroupJob, *, sampled: bool = False) -> Attempt:
    """Wait until every rank ended; one that fails, stalls or is lost ends its siblings, and all
    are ended when the group has to leave.

    Raises Unreachable when no host answers.
    """
    why, shown, stopped = "", "", False
    pulse, reach = Pulse(study.clock, group.out), Reach(study.clock)
    while True:
        states = [reach.state(host, group.job) for host in group.hosts]
        failed = [
            f"{host.name}: {_words(state)}"
            for host, state in zip(group.hosts, states, strict=True)
            if state is not None and _has_failed(state)
        ]
        if not failed:
            failed = [f"{name}: {said}" for name, said in reach.lost(group.hosts).items()]
        known = [state for state in states if state is not None]
        if not failed and len(known) == len(states):
            if all(state.status == "exited" for state in known):
                why = _unusable(study, group)
                break
            if group.heartbeat:
                failed = pulse.stalled(group.hosts, known)
        if due := group.leave():
            why, stopped = "; ".join((due.why, *failed)), True
            states = _end_all(study, group, LEAVES)
            break
        if failed:
            why = "; ".join(failed)
            states = _end_all(study, group, "stopped: a sibling failed")
            break
        group.beside(group)
        shown = _show(study, group, shown)
        study.clock.sleep(POLL_S)
    attempt = _attempt(study, group, states, why, sampled=sampled)
    return attempt.model_copy(update={"outcome": "stopped"}) if stopped else attempt


def _has_failed(state: JobState) -> bool:
    gone = state.status in ("lost", "absent")
    return gone or (state.status == "exited" and state.exit_code != 0)


def _end_all(study: Study, group: GroupJob, reason: str) -> list[JobState | None]:
    """End the job on every host that answers; None for one that does not."""
    ended: dict[str, JobState | None] = {}
    for host in group.hosts:
        ended[host.name] = None
        if _answers(host, group.job):
            with suppress(Unreachable):
                ended[host.name] = host.stop(group.job, reason=reason)
        if ended[host.name] is None:
            study.journal.note("job/not-ended", {"host": host.name, "job": group.job})
    return [ended[host.name] for host in group.hosts]


def _answers(host: Host, job_id: str) -> bool:
    try:
        host.state(job_id)
    except Unreachable:
        return False
    return True


def _words(state: JobState) -> str:
    if state.status == "absent":
        return "its job folder is gone"
    if state.status == "lost":
        return "its supervisor is gone"
    if state.reason:
        return f"ended: {state.reason}"
    code = state.exit_code or 0
    return f"killed by signal {-code}" if code < 0 else f"exit status {code}"


def _unusable(study: Study, group: GroupJob) -> str:
    """Why the outputs of a job that says it is done cannot be used; empty: they can."""
    try:
        group.accept(group)
    except (BadInput, contract.ContractError) as error:
        said = str(error).replace(f"{study.work}/", "").rstrip(".")
        return f"exit status 0, but its outputs cannot be used: {said}"
    return ""


def _show(study: Study, group: GroupJob, shown: str) -> str:
    """Show rank 0's heartbeat when it is a new one; returns its time."""
    beat = read_heartbeat(group.hosts[0], group.out, 0)
    if beat is None or beat.time == shown:
        return shown
    text = f"{group.unit} {beat.done}/{beat.of}" if beat.of else beat.phase
    if beat.loss is not None:
        text += f"  loss {beat.loss:.3f}"
    study.progress.item(
        group.label,
        text,
        done=beat.done if beat.of else None,
        of=beat.of or None,
        rate=beat.rate,
        unit="tok/s",
    )
    return beat.time


def _attempt(
    study: Study,
    group: GroupJob,
    states: Sequence[JobState | None],
    why: str,
    *,
    sampled: bool,
) -> Attempt:
    logs = []
    folder = study.folder / "logs"
    folder.mkdir(exist_ok=True)
    for host, state in zip(group.hosts, states, strict=True):
        if state is None or state.status == "absent":
            continue
        local = folder / f"{group.job}-{host.name}.log"
        try:
            _fetch_log(host, f"jobs/{group.job}/log", state.log_bytes, local)
        except Waiting as error:
            why += f" | {host.name}: its log could not be fetched ({error.what})" if why else ""
            continue
        logs.append(study.store.put(local, name=f"logs/{local.name}"))
        if sampled and (samples := _samples(study, group, host)) is not None:
            logs.append(samples)
        if why:
            why += _tail(host.name, local)
    known = [state for state in states if state is not None]
    return Attempt(
        number=int(group.key.rsplit("/", 1)[1]),
        outcome="lost" if len(known) < len(states) else "failed" if why else "done",
        started_utc=min((s.started_utc for s in known if s.started_utc), default=study.clock.utc()),
        ended_utc=max((s.ended_utc for s in known if s.ended_utc), default=study.clock.utc()),
        seconds=max((s.seconds or 0.0 for s in known), default=0.0),
        exit_codes={
            host.name: state.exit_code if state else None
            for host, state in zip(group.hosts, states, strict=True)
        },
        reason=why,
        logs=tuple(logs),
    )


def _fetch_log(host: Host, path: str, size: int, local: Path) -> None:
    """The log; of one that is longer than a person reads, its beginning and its end."""
    if size <= MOST_LOG_BYTES:
        host.get(path, local)
        return
    with open(local, "wb") as out:
        _copy_range(host, path, 0, LOG_HEAD_BYTES, out)
        left_out = size - MOST_LOG_BYTES
        out.write(f"\n[{left_out} bytes of this log were left out here]\n".encode())
        _copy_range(host, path, LOG_HEAD_BYTES + left_out, size, out)


def _copy_range(host: Host, path: str, offset: int, end: int, out: BinaryIO) -> None:
    while offset < end:
        piece = host.read(path, offset=offset, limit=min(PIECE, end - offset))
        if not piece:
            return
        out.write(piece)
        offset += len(piece)


def _samples(study: Study, group: GroupJob, host: Host) -> Artifact | None:
    """What was sampled on a host, once its sampler has seen the job's end; None without any."""
    until = study.clock.monotonic() + SAMPLER_S
    with suppress(Waiting):
        while host.state(f"sample.{group.job}").status in ("starting", "running"):
            if study.clock.monotonic() > until:
                host.stop(f"sample.{group.job}", reason="its job has ended")
            study.clock.sleep(POLL_S)
        local = study.folder / "logs" / f"{group.job}-{host.name}.samples.jsonl"
        host.get(group.samples_path, local)
        return study.store.put(local, name=f"logs/{local.name}")
    return None


def _tail(name: str, log: Path) -> str:
    with open(log, "rb") as handle:
        handle.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        data = handle.read(LOG_TAIL_BYTES).decode("utf-8", "replace").strip()
    last = data.splitlines()[-1][:300] if data else "(empty log)"
    return f" | {name} log: {last}"
