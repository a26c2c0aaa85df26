"""Running one job over a group of hosts: start, follow, end siblings, keep logs.

Every outside effect goes through the journal, so that a killed operator reattaches to what runs.
"""

from __future__ import annotations

from dataclasses import replace

from harness.departure import TimeToLeave
from harness.errors import Refused, Waiting
from harness.fleet.protocol import FleetSource
from harness.following import follow
from harness.group_job import SAMPLE, GroupJob, Terms, command_line, job_environment
from harness.hosts.protocol import Host, Job
from harness.receipts import Attempt, Line
from harness.strict import Model
from harness.study import Study
from trainer import contract


class Started(Model):
    """Outcome of starting one rank's job."""

    job: str


SAMPLE_EVERY_S = 5


def _sampler(group: GroupJob, host: Host, interface: str, ends_by_utc: str) -> Job:
    """Samples the machine while the job runs and ends the job at its traffic cap."""
    words, environment = host.program("sample")
    folder = f"{host.work}/jobs/{group.job}"
    argv = [*words, "--out", f"{host.work}/{group.samples_path}", "--every", str(SAMPLE_EVERY_S),
            "--interface", interface, "--job", folder]  # fmt: skip
    if group.cap_bytes:
        argv += ["--cap-bytes", str(group.cap_bytes)]
    return Job(
        id=f"{SAMPLE}{group.job}",
        argv=tuple(argv),
        folder=f"jobs/{SAMPLE}{group.job}",
        environment={**environment, "HARNESS_FLEET": host.mark},
        ends_by_utc=ends_by_utc,
    )


def run_group(study: Study, fleet: FleetSource, group: GroupJob) -> Attempt:
    """Run it once. The attempt's outcome is in the journal; a second call returns the same."""

    def go() -> Attempt:
        terms = None
        if group.leave() is None:
            terms = terms_of(study, fleet, group)
            for rank, host in enumerate(group.hosts):
                start_rank(study, fleet, group, rank, host, terms)
        attempt = follow(study, group, sampled=group.samples(fleet))
        if terms is None:
            return attempt
        return _with_lines(attempt, terms.lines, group.after(group, terms.boots))

    return study.journal.effect(
        f"attempt/{group.key}",
        Attempt,
        intent={"hosts": [host.name for host in group.hosts], "task": group.recipe["task"]},
        act=go,
        adopt=go,
    )


def _with_lines(attempt: Attempt, before: tuple[Line, ...], after: tuple[Line, ...]) -> Attempt:
    """The attempt with what was looked at around it; a failed one's reason names what was wrong."""
    why = attempt.reason
    if attempt.outcome != "done":
        why += "".join(f" | {line.host}: {line.observed}" for line in after if not line.ok)
    return attempt.model_copy(update={"lines": before + after, "reason": why})


def terms_of(study: Study, fleet: FleetSource, group: GroupJob) -> Terms:
    """Port and end of an attempt, fixed in the journal by the first call."""

    def ask() -> Terms:
        ends = min(study.clock.after(group.limit_s), fleet.deadline_utc)
        hosts = group.hosts
        boots = {host.name: _clear(study, host) for host in hosts} if group.heartbeat else {}
        return Terms(
            port=free_port(hosts[0]) if len(hosts) > 1 else 0,
            ends_by_utc=ends,
            interfaces=interfaces(fleet, hosts),
            boots=boots,
            lines=group.ready(group, boots),
        )

    key = f"terms/{group.key}"
    return study.journal.effect(key, Terms, intent={}, act=ask, adopt=lambda: None)


def free_port(host: Host) -> int:
    """A TCP port that is free at the host's address towards its peers."""
    return int(contract.parse(host.helper("tree", "port", host.address).stdout)["port"])


def interfaces(fleet: FleetSource, hosts: tuple[Host, ...]) -> tuple[str, ...]:
    """By rank: the interface to rank 0, of rank 0 that to rank 1, of a single rank that to another
    host of the fleet; 'lo' where there is no other one."""
    if fleet.kind == "local":
        return ("lo",) * len(hosts)
    found = []
    for host in hosts:
        others = [each for each in (*hosts, *fleet.hosts()) if each.name != host.name]
        found.append(route(host, others[0])["interface"] if others else "lo")
    return tuple(found)


def route(host: Host, peer: Host) -> dict[str, str]:
    """{interface, source} of the kernel's route from a host to a peer's address."""
    found: dict[str, str] = contract.parse(host.helper("route", peer.address).stdout)
    return found


def _clear(study: Study, host: Host) -> str:
    """Nothing of an earlier attempt may run beside this one. Returns the host's boot id."""
    for job_id in host.jobs():
        if host.state(job_id).status in ("starting", "running"):
            host.stop(job_id, reason="left over from an earlier attempt")
            study.journal.note("job/left-over", {"host": host.name, "job": job_id})
    return host.facts().boot_id


def start_rank(
    study: Study, fleet: FleetSource, group: GroupJob, rank: int, host: Host, terms: Terms
) -> None:
    """Start one rank's job, or find it started. Raises Refused without armed deadlines."""
    job = _job(study, fleet, group, rank, host, terms)

    def act() -> Started:
        require_deadlines(study, fleet)
        recipe = study.work / "recipes" / f"{job.id}.json"
        recipe.parent.mkdir(parents=True, exist_ok=True)
        contract.write_json(recipe, group.recipe)
        host.put(recipe, f"recipes/{job.id}.json")
        host.start(job)
        return beside()

    def beside() -> Started:
        """A sampler starts once; who was killed between the two starts finds none."""
        if group.samples(fleet):
            host.start(_sampler(group, host, terms.interfaces[rank], terms.ends_by_utc))
        return Started(job=job.id)

    def adopt() -> Started | None:
        return beside() if host.state(job.id).status != "absent" else None

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


def _job(
    study: Study, fleet: FleetSource, group: GroupJob, rank: int, host: Host, terms: Terms
) -> Job:
    environment = job_environment(host, group.pushed)
    environment["HARNESS_FLEET"] = host.mark
    if group.recipe["device"] == "cuda" and fleet.kind == "local":
        environment["CUDA_VISIBLE_DEVICES"] = _gpu(study, host)
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
        interface=terms.interfaces[rank] if terms.interfaces else "lo",
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


def _gpu(study: Study, host: Host) -> str:
    """Which of this computer's GPUs a worker sees: its own, or in turn where they may share."""
    slot, local = host.name.rsplit("-", 1)[1], study.plan.hosts.local
    if local is None or local.transport is None:
        return slot
    return str(int(slot) % max(1, len(host.facts().gpus)))


def attempts(
    study: Study, fleet: FleetSource, group: GroupJob, limit: int
) -> tuple[tuple[Attempt, ...], str]:
    """Run until one attempt is done; returns all attempts and the output folder of the last.

    Raises TimeToLeave when the job's time is over, Waiting when every attempt failed.
    """
    made: list[Attempt] = []
    outs: tuple[str, ...] = ()
    for number in range(1, limit + 1):
        one = replace(group, key=f"{group.key}/{number}", earlier=outs if group.resumes else ())
        recorded = study.journal.find("outcome", f"attempt/{one.key}")
        due = group.leave()
        if due and study.journal.find("intent", f"attempt/{one.key}") is None:
            raise TimeToLeave(due, made, outs)
        if number > 1 and group.resumes and recorded is None:
            one = replace(one, earlier=one.earlier + group.before(one))
        outs += (one.out,)
        made.append(run_group(study, fleet, one))
        if made[-1].outcome == "done":
            return tuple(made), one.out
        if due := group.leave():
            raise TimeToLeave(due, made, outs)
        study.progress.note(f"{group.label}: attempt {number} of {limit} failed: {made[-1].reason}")
    raise Waiting(
        f"{group.label} failed {limit} of {limit} attempts, the last one because {made[-1].reason}",
        where=str(study.folder / "logs"),
        next_command=study.again("--abandon", "why"),
    )
