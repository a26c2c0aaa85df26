"""What a fleet's machines mean for recipes: device and threads. Pure."""

from __future__ import annotations

from typing import Literal

from harness.errors import BadInput
from harness.hosts.protocol import HostFacts
from harness.plan import Plan


def device_of(plan: Plan, hosts: tuple[HostFacts, ...]) -> Literal["cpu", "cuda"]:
    """CPU or CUDA for every job of the study. Raises BadInput when CUDA is asked and not there."""
    asked = plan.hosts.local.device if plan.hosts.local else "cuda"
    gpus = len(hosts[0].gpus)
    enough = gpus >= plan.workers
    if asked == "cuda" and not enough:
        raise BadInput(
            f"the plan asks for CUDA on {plan.workers} worker(s), and this computer shows "
            f"{gpus} GPU(s)",
            where="#/hosts/local/device",
        )
    return "cuda" if asked == "cuda" or (asked == "auto" and enough and gpus > 0) else "cpu"


def threads_of(plan: Plan, hosts: tuple[HostFacts, ...], workers: int) -> int:
    """CPU threads of each of `workers` ranks that run at once on this computer."""
    local = plan.hosts.local
    if local is not None and local.threads is not None:
        return local.threads
    return max(1, hosts[0].cpus // workers)
