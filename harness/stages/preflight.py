"""preflight: every host is looked at before the first arm, a line a check."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from harness import jobs, machine, recipes
from harness.clock import parse_utc
from harness.departure import TimeToLeave, departure_of, while_there_is_time
from harness.errors import Waiting
from harness.group_job import command_line, job_environment
from harness.hosts.protocol import Host
from harness.plan.sizes import checkpoint_disk_bytes
from harness.prepared import Prepared
from harness.receipts import (
    Allowance,
    Line,
    PreflightReceipt,
    ProvisionReceipt,
    PushReceipt,
)
from harness.serving.dry_run import dry_run
from harness.stages.between import boot_line
from harness.stages.machines import (
    allowance_line,
    allowances,
    read_ahead_lines,
    route_lines,
)
from harness.stages.push import ready_hosts
from harness.stages.stamp import Stamp
from harness.stages.together import check_together
from harness.strict import load_file
from harness.study import Receipts, Study
from trainer import contract

CLOCK_S = 2.0
GIB = 2**30
LINK_LIMITS = ("--bytes", str(256 << 20), "--seconds", "3")
LINK_TRIES = 20
"""The server needs a moment until it listens."""


def preflight(study: Study, done: Receipts, stamp: Stamp) -> PreflightReceipt:
    """Look at every host. Raises Waiting naming the first line that fails. Past the point of no
    return the receipt holds what was seen by then."""
    provisioned = done.of(ProvisionReceipt)
    device = machine.device_of(study.plan, provisioned)
    looks = _Looks()
    try:
        while_there_is_time(study, done, lambda: _look(study, done, device, looks))
    except TimeToLeave as left:
        if study.development:
            raise
        return PreflightReceipt(
            **stamp.close(), device=device, lines=tuple(looks.lines),
            allowances=tuple(looks.counted), incomplete=left.incomplete,
        )  # fmt: skip
    notes = tuple(
        f"{each.host}, {each.check}: {each.observed}" for each in looks.disks if not each.ok
    )
    if study.fleet_kind == "local":
        notes = (
            "read-ahead and interface allowance are not applicable to workers on one computer",
        )
        if machine.transport_of(study.plan, provisioned) and device == "cuda":
            notes += (
                "exchanges went by gloo through host memory, and workers may have shared a GPU: "
                "their times and speeds say nothing of a GPU each",
            )
    return PreflightReceipt(
        **stamp.close(),
        notes=notes,
        device=device,
        lines=(*looks.lines, *looks.disks),
        allowances=tuple(looks.counted),
    )


@dataclass
class _Looks:
    """What was seen so far."""

    lines: list[Line] = field(default_factory=list)
    counted: list[Allowance] = field(default_factory=list)
    disks: tuple[Line, ...] = ()


def _look(study: Study, done: Receipts, device: Literal["cpu", "cuda"], seen: _Looks) -> None:
    hosts, lines = ready_hosts(study, done), seen.lines
    departure = departure_of(study, done, study.fleet(done.of(ProvisionReceipt)))
    for host in hosts:
        lines += _host(study, done, host)
    lines += _deadlines(study, done)
    lines += route_lines(study, hosts)
    for host in hosts:
        seen.counted += allowances(study, host, hosts)
    lines += map(allowance_line, seen.counted)
    lines += _links(hosts)
    lines += _dry_runs(study, done, hosts, device)
    lines += dry_run(study, hosts, done.of(PushReceipt).hosts, device)
    together = hosts[: study.plan.workers]
    lines += check_together(study, done, together, device, "preflight", departure.due)
    bad = [line for line in lines if not line.ok]
    if bad:
        raise Waiting(
            f"preflight '{bad[0].check}' found {bad[0].observed} where {bad[0].required} is needed",
            where=bad[0].host,
            next_command=study.again(),
        )
    seen.disks = read_ahead_lines(study, hosts, "training")


def _host(study: Study, done: Receipts, host: Host) -> Iterator[Line]:
    now = host.facts()
    prepared = load_file(Prepared, study.prepared_path)
    weights = 4 * (prepared.seed_model.parameters or 0)
    disk = 3 * weights * len(study.plan.models) + checkpoint_disk_bytes(study.plan)
    yield _line(host, "disk", f"{now.disk_free_bytes / GIB:.1f} GiB free",
                f"at least {disk / GIB:.1f} GiB", now.disk_free_bytes >= disk)  # fmt: skip
    memory = 6 * weights * study.plan.workers
    yield _line(host, "memory", f"{now.memory_bytes / GIB:.1f} GiB",
                f"at least {memory / GIB:.1f} GiB", now.memory_bytes >= memory)  # fmt: skip
    offset = abs((parse_utc(now.clock_utc) - study.clock.now()).total_seconds())
    yield _line(host, "clock", f"{offset:.1f} s off", f"within {CLOCK_S:.0f} s", offset <= CLOCK_S)
    yield boot_line(study, done, host, now.boot_id)
    yield _line(host, "gpus", ", ".join(now.gpus) or "none", "recorded", True)
    yield _line(host, "driver", now.driver or "none", "recorded", True)
    yield _line(host, "cpus", str(now.cpus), "recorded", True)


def _line(host: Host, check: str, observed: str, required: str, ok: bool) -> Line:
    return Line(host=host.name, check=check, observed=observed, required=required, ok=ok)


def _deadlines(study: Study, done: Receipts) -> Iterator[Line]:
    fleet = study.fleet(done.of(ProvisionReceipt))
    for deadline in fleet.deadlines():
        yield Line(
            host=fleet.id,
            check=f"{deadline.kind} deadline",
            observed=deadline.proof,
            required="armed" if deadline.applies else "not applicable",
            ok=deadline.armed or not deadline.applies,
        )


def _links(hosts: tuple[Host, ...]) -> Iterator[Line]:
    """Bandwidth and round trip between every pair, over one plain TCP connection."""
    for i, server in enumerate(hosts):
        for client in hosts[i + 1 :]:
            seen = _link(server, client)
            yield _line(
                client,
                f"link to {server.name}",
                f"{seen['bits_per_s'] / 1e9:.1f} Gbit/s, {seen['round_trip_s'] * 1e3:.2f} ms",
                "recorded",
                True,
            )


def _link(server: Host, client: Host) -> dict[str, float]:
    port = str(contract.parse(server.helper("tree", "port", server.address).stdout)["port"])
    place = ("--address", server.address, "--port", port)
    with ThreadPoolExecutor(1) as pool:
        serving = pool.submit(server.helper, "link", "serve", *place, "--seconds", "20")
        answer: dict[str, float] = {}
        for _ in range(LINK_TRIES):
            done = client.helper("link", "measure", *place, *LINK_LIMITS, check=False)
            if done.exit_code == 0:
                answer = contract.parse(done.stdout)
                break
        serving.result()
    return answer


def _dry_runs(study: Study, done: Receipts, hosts: tuple[Host, ...], device: str) -> Iterator[Line]:
    """The whole command line of every arm, checked without starting anything."""
    pushed = done.of(PushReceipt).hosts
    fleet = study.fleet(done.of(ProvisionReceipt))
    for arm in study.plan.arms:
        recipe = recipes.train(
            study.plan, arm, microbatch=arm.microbatch or 1, device=device, threads=1,
            transport=machine.transport_of(study.plan, done.of(ProvisionReceipt)),
        )  # fmt: skip
        local = study.work / "recipes" / f"dry-{arm.name}.json"
        local.parent.mkdir(exist_ok=True)
        contract.write_json(local, recipe)
        for rank, host in enumerate(hosts[: arm.workers]):
            host.put(local, f"recipes/dry-{arm.name}.json")
            argv = command_line(
                host,
                pushed,
                recipe=f"recipes/dry-{arm.name}.json",
                model="seed",
                out="out/dry",
                rank=rank,
                nodes=arm.workers,
                address=hosts[0].address,
                port=jobs.free_port(hosts[0]) if arm.workers > 1 else 0,
                interface=jobs.interfaces(fleet, hosts[: arm.workers])[rank],
            )
            environment = job_environment(host, pushed)
            ended = host.run(
                [argv[0], "--dry-run", *argv[1:]],
                timeout_s=300,
                environment=environment,
                check=False,
            )
            words = (ended.stderr.strip().splitlines() or ["accepted"])[-1]
            observed = "accepted" if ended.exit_code == 0 else words[:200]
            yield _line(host, f"dry run of {arm.name}", observed, "accepted", ended.exit_code == 0)
