"""What a fleet's machines mean for recipes: device and threads. Pure."""

from __future__ import annotations

from typing import Literal

from harness.errors import BadInput
from harness.plan import Plan
from harness.plan.hosts import LocalHosts
from harness.receipts import ProvisionReceipt


def device_of(plan: Plan, fleet: ProvisionReceipt) -> Literal["cpu", "cuda"]:
    """CPU or CUDA for every job of the study. Raises BadInput when CUDA is asked and not there.

    Workers of one computer share its GPUs, one each unless the plan's transport lets them share
    one; other hosts run one worker each.
    """
    local = _declared(plan, fleet)
    asked = local.device if local else "cuda"
    shared = fleet.fleet_kind == "local"
    gpus = len(fleet.hosts[0].gpus) if shared else sum(bool(host.gpus) for host in fleet.hosts)
    enough = gpus >= (1 if transport_of(plan, fleet) else plan.workers)
    if asked == "cuda" and not enough:
        seen = f"this computer shows {gpus} GPU(s)" if shared else f"{gpus} host(s) show a GPU"
        if shared and gpus:
            seen += "; NCCL takes one GPU a worker, and only the transport 'gloo' lets them share"
        raise BadInput(
            f"the plan asks for CUDA on {plan.workers} worker(s), and {seen}",
            where="#/hosts/local/device" if local else "#/hosts",
        )
    return "cuda" if asked == "cuda" or (asked == "auto" and enough and gpus > 0) else "cpu"


def transport_of(plan: Plan, fleet: ProvisionReceipt) -> Literal["gloo"] | None:
    """What the plan says carries exchanges between workers of this computer; null: the usual."""
    local = plan.hosts.local
    return local.transport if local is not None and fleet.fleet_kind == "local" else None


def threads_of(plan: Plan, fleet: ProvisionReceipt, workers: int) -> int:
    """CPU threads of each of `workers` ranks that run at once."""
    local = _declared(plan, fleet)
    if local is not None and local.threads is not None:
        return local.threads
    shared = workers if fleet.fleet_kind == "local" else 1
    return max(1, min(host.cpus for host in fleet.hosts) // shared)


def _declared(plan: Plan, fleet: ProvisionReceipt) -> LocalHosts | None:
    """What the plan says of devices; its word on this computer is not meant for the stack's."""
    return None if fleet.fleet_kind == "stack" else plan.hosts.local
