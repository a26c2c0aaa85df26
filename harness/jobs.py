"""Running one job over a group of hosts: start, follow, end siblings, keep logs.

Every outside effect goes through the journal, so that a killed operator reattaches to what runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import BadInput, Refused, Waiting
from harness.fleet.protocol import FleetSource
from harness.heartbeats import Pulse, read_heartbeat
from harness.hosts.protocol import Host, Job, JobState
from harness.receipts import Attempt, PushedHost
from harness.strict import Model
from harness.study import Study
from trainer import contract

POLL_S = 0.2
LOG_TAIL_BYTES = 2000


class Started(Model):
    """Outcome of starting one rank's job."""

    job: str


class Terms(Model):
    """What every rank of one attempt is started with, also when the start is repeated."""

    port: int
    """Rendezvous port; 0 with one node."""
    ends_by_utc: str


def _anything(group: GroupJob) -> None:
    """Accept whatever is there."""


def _nothing(group: GroupJob) -> tuple[str, ...]:
    """Nothing further."""
    return ()


@dataclass(frozen=True)
class GroupJob:
    """One job of a trainer over some hosts. `key` names it in the journal and on the hosts."""

    key: str
    recipe: dict[str, Any]
    hosts: tuple[Host, ...]
    pushed: tuple[PushedHost, ...]
    model: str
    """Folder of the model to start from, in each host's work folder."""
    limit_s: float
    """The job is ended after this long, and at the fleet's deadline in any case."""
    label: str
    unit: str = "update"
    heartbeat: bool = True
    resumes: bool = False
    """An attempt is told where the earlier ones wrote, to go on from their checkpoints."""
    earlier: tuple[str, ...] = ()
    """Output folders of earlier attempts, in each host's work folder."""
    beside: Callable[[GroupJob], None] = _anything
    """Called now and then while all ranks run."""
    before: Callable[[GroupJob], tuple[str, ...]] = _nothing
    """Called before another attempt; gives further folders of `earlier`."""
    accept: Callable[[GroupJob], None] = _anything
    """Looks at the outputs once every rank has exited with 0; raises BadInput when they cannot be
    used, and the attempt has failed. Looks only, and may be called again."""

    @property
    def job(self) -> str:
        """Folder-safe name."""
        return self.key.replace("/", ".")

    @property
    def out(self) -> str:
        """Output folder in each host's work folder."""
        return f"out/{self.job}"


def run_group(study: Study, fleet: FleetSource, group: GroupJob) -> Attempt:
    """Run it once. The attempt's outcome is in the journal; a second call returns the same."""

    def go() -> Attempt:
        terms = _terms(study, fleet, group)
        for rank, host in enumerate(group.hosts):
            _start(study, fleet, group, rank, host, terms)
        return _follow(study, group)

    return study.journal.effect(
        f"attempt/{group.key}",
        Attempt,
        intent={"hosts": [host.name for host in group.hosts], "task": group.recipe["task"]},
        act=go,
        adopt=go,
    )


def _terms(study: Study, fleet: FleetSource, group: GroupJob) -> Terms:
    def ask() -> Terms:
        ends = min(study.clock.after(group.limit_s), fleet.deadline_utc)
        if len(group.hosts) == 1:
            return Terms(port=0, ends_by_utc=ends)
        first = group.hosts[0]
        answer = contract.parse(first.helper("tree", "port", first.address).stdout)
        return Terms(port=int(answer["port"]), ends_by_utc=ends)

    key = f"terms/{group.key}"
    return study.journal.effect(key, Terms, intent={}, act=ask, adopt=lambda: None)


def _start(
    study: Study, fleet: FleetSource, group: GroupJob, rank: int, host: Host, terms: Terms
) -> None:
    job = _job(fleet, group, rank, host, terms)

    def act() -> Started:
        require_deadlines(study, fleet)
        recipe = study.work / "recipes" / f"{job.id}.json"
        recipe.parent.mkdir(parents=True, exist_ok=True)
        contract.write_json(recipe, group.recipe)
        host.put(recipe, f"recipes/{job.id}.json")
        host.start(job)
        return Started(job=job.id)

    def adopt() -> Started | None:
        return Started(job=job.id) if host.state(job.id).status != "absent" else None

    study.journal.effect(
        f"job/{group.key}/{host.name}",
        Started,
        intent={"job": job.id, "recipe_sha256": contract.hash_of(group.recipe)},
        act=act,
        adopt=adopt,
    )


def require_deadlines(study: Study, fleet: FleetSource) -> None:
    """Before anything starts: a deadline that died is armed again, at the time it always had.

    Raises Refused when one cannot be proved armed.
    """
    if all(each.armed for each in fleet.deadlines() if each.applies):
        return
    study.journal.note("deadline/arm-again", {"fleet": fleet.id, "at_utc": fleet.deadline_utc})
    fleet.arm_deadlines()
    for deadline in fleet.deadlines():
        if deadline.applies and not deadline.armed:
            raise Refused(
                f"the {deadline.kind} deadline is not armed ({deadline.proof}), so nothing starts",
                where=fleet.id,
                next_command=study.again("--abandon", "why"),
            )


def _job(fleet: FleetSource, group: GroupJob, rank: int, host: Host, terms: Terms) -> Job:
    environment = job_environment(host, group.pushed)
    environment["HARNESS_FLEET"] = fleet.id
    if group.recipe["device"] == "cuda" and fleet.kind == "local":
        environment["CUDA_VISIBLE_DEVICES"] = host.name.rsplit("-", 1)[1]
    argv = command_line(
        host,
        group.pushed,
        recipe=f"recipes/{group.job}.json",
        model=group.model,
        out=group.out,
        rank=rank,
        nodes=len(group.hosts),
        address=group.hosts[0].address,
        port=terms.port,
        interface="lo" if fleet.kind == "local" else "",
    )
    for out in group.earlier:
        argv += ["--resume", f"{host.work}/{out}"]
    return Job(
        id=group.job,
        argv=tuple(argv),
        folder=f"jobs/{group.job}",
        environment=environment,
        ends_by_utc=terms.ends_by_utc,
    )


def job_environment(host: Host, pushed: tuple[PushedHost, ...]) -> dict[str, str]:
    """Environment variables of a job: the trainer's environment is first on PATH."""
    known = next(each for each in pushed if each.host == host.name)
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    if known.environment_path:
        environment["PATH"] = f"{known.environment_path}/bin:/usr/local/bin:/usr/bin:/bin"
    return environment


def command_line(
    host: Host,
    pushed: tuple[PushedHost, ...],
    *,
    recipe: str,
    model: str,
    out: str,
    rank: int,
    nodes: int,
    address: str,
    port: int,
    interface: str,
) -> list[str]:
    """The trainer's command line (docs/contract.md); paths are made absolute on the host."""
    source = next(each for each in pushed if each.host == host.name).source_sha256
    values = {
        "recipe": f"{host.work}/{recipe}",
        "inputs": f"{host.work}/inputs",
        "model": f"{host.work}/{model}",
        "out": f"{host.work}/{out}",
        "node-rank": str(rank),
        "nodes": str(nodes),
        "address": address,
        "port": str(port),
        "interface": interface,
    }
    argv = [f"{host.work}/source/{source}/trainer/launch"]
    for name, value in values.items():
        argv += [f"--{name}", value]
    return argv


def _follow(study: Study, group: GroupJob) -> Attempt:
    """Wait until every rank ended; one that fails or stalls ends its siblings."""
    why, shown = "", ""
    pulse = Pulse(study.clock, group.out)
    while True:
        states = [host.state(group.job) for host in group.hosts]
        failed = [
            f"{host.name}: {_words(state)}"
            for host, state in zip(group.hosts, states, strict=True)
            if state.status in ("lost", "absent")
            or (state.status == "exited" and state.exit_code != 0)
        ]
        if not failed and all(state.status == "exited" for state in states):
            why = _unusable(study, group)
            break
        if not failed and group.heartbeat:
            failed = pulse.stalled(group.hosts, states)
        if failed:
            why = "; ".join(failed)
            states = [
                host.stop(group.job, reason="stopped: a sibling failed") for host in group.hosts
            ]
            break
        group.beside(group)
        shown = _show(study, group, shown)
        study.clock.sleep(POLL_S)
    return _attempt(study, group, states, why)


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


def _attempt(study: Study, group: GroupJob, states: list[JobState], why: str) -> Attempt:
    logs = []
    folder = study.folder / "logs"
    folder.mkdir(exist_ok=True)
    for host, state in zip(group.hosts, states, strict=True):
        if state.status == "absent":
            continue
        local = folder / f"{group.job}-{host.name}.log"
        host.get(f"jobs/{group.job}/log", local)
        logs.append(study.store.put(local, name=f"logs/{local.name}"))
        if why:
            why += _tail(host.name, local)
    return Attempt(
        number=int(group.key.rsplit("/", 1)[1]),
        outcome="failed" if why else "done",
        started_utc=min(
            (s.started_utc for s in states if s.started_utc), default=study.clock.utc()
        ),
        ended_utc=max((s.ended_utc for s in states if s.ended_utc), default=study.clock.utc()),
        seconds=max((s.seconds or 0.0 for s in states), default=0.0),
        exit_codes={h.name: s.exit_code for h, s in zip(group.hosts, states, strict=True)},
        reason=why,
        logs=tuple(logs),
    )


def _tail(name: str, log: Path) -> str:
    with open(log, "rb") as handle:
        handle.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        data = handle.read(LOG_TAIL_BYTES).decode("utf-8", "replace").strip()
    last = data.splitlines()[-1][:300] if data else "(empty log)"
    return f" | {name} log: {last}"


def attempts(
    study: Study, fleet: FleetSource, group: GroupJob, limit: int
) -> tuple[tuple[Attempt, ...], str]:
    """Run until one attempt is done; returns all attempts and the output folder of the last.

    Raises Waiting when every attempt failed.
    """
    made: list[Attempt] = []
    outs: tuple[str, ...] = ()
    for number in range(1, limit + 1):
        one = replace(group, key=f"{group.key}/{number}", earlier=outs if group.resumes else ())
        recorded = study.journal.find("outcome", f"attempt/{one.key}")
        if number > 1 and group.resumes and recorded is None:
            one = replace(one, earlier=one.earlier + group.before(one))
        outs += (one.out,)
        made.append(run_group(study, fleet, one))
        if made[-1].outcome == "done":
            return tuple(made), one.out
        study.progress.note(f"{group.label}: attempt {number} of {limit} failed: {made[-1].reason}")
    raise Waiting(
        f"{group.label} failed {limit} of {limit} attempts, the last one because {made[-1].reason}",
        where=str(study.folder / "logs"),
        next_command=study.again("--abandon", "why"),
    )
