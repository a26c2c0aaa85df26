"""A replica's whole command line, checked before the first arm; later it would cost hours."""

from __future__ import annotations

from collections.abc import Iterator

from harness import recipes
from harness.group_job import command_line, job_environment
from harness.hosts.protocol import Host
from harness.receipts import Line, PushedHost
from harness.study import Study
from trainer import contract

NO_ROOT = "0" * 64
"""The candidate's root is not known yet."""


def dry_run(
    study: Study, hosts: tuple[Host, ...], pushed: tuple[PushedHost, ...], device: str
) -> Iterator[Line]:
    """One line a host that will serve; nothing for a plan without serving."""
    serving = study.plan.serving
    if serving is None:
        return
    recipe = recipes.serve(
        study.plan, parameter_root=NO_ROOT, end_tokens=(0,), device=device, threads=1
    )
    local = study.work / "recipes" / "dry-serve.json"
    local.parent.mkdir(exist_ok=True)
    contract.write_json(local, recipe)
    for host in hosts[: max(phase.replicas for phase in serving.phases)]:
        host.put(local, "recipes/dry-serve.json")
        argv = command_line(
            host, pushed, recipe="recipes/dry-serve.json", model="seed", out="out/dry", rank=0,
            nodes=1, address=host.address, port=0, interface="lo",
        )  # fmt: skip
        ended = host.run(
            [argv[0], "--dry-run", *argv[1:]], timeout_s=300,
            environment=job_environment(host, pushed), check=False,
        )  # fmt: skip
        ok = ended.exit_code == 0
        said = (ended.stderr.strip().splitlines() or ["accepted"])[-1][:200]
        yield Line(
            host=host.name,
            check="dry run of serve",
            observed="accepted" if ok else said,
            required="accepted",
            ok=ok,
        )
