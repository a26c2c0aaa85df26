"""This process among its peers: device, threads, process group."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from trainer.errors import TrainerError
from trainer.job import Job
from trainer.peers import watched

COLLECTIVE_TIMEOUT = timedelta(minutes=10)


@dataclass(frozen=True)
class Rank:
    """One worker and its device."""

    rank: int
    workers: int
    device: torch.device

    def synchronise(self) -> None:
        """Wait for all work queued on the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def peak_memory(self) -> tuple[int, str]:
        """(most bytes held so far, whose): torch's allocations on a GPU, else the process."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device), "device"
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "process"

    def device_name(self) -> str:
        """What the device calls itself."""
        if self.device.type == "cuda":
            return torch.cuda.get_device_name(self.device)
        return _processor_name()


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as handle:
            for line in handle:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


@contextmanager
def join(job: Job) -> Iterator[Rank]:
    """This process's rank, with its peers connected. Raises TrainerError without the device.

    The group is taken down only on success: after a failure a peer may be gone, and waiting for
    it would keep this process alive.
    """
    if job.recipe.threads is not None:
        torch.set_num_threads(job.recipe.threads)
    prefer_determinism()
    device = _device(job.recipe.device)
    if job.workers == 1:
        yield Rank(0, 1, device)
        return
    backend = backend_of(job.recipe.transport, device)
    dist.init_process_group(
        backend,
        timeout=COLLECTIVE_TIMEOUT,
        device_id=device if backend == "nccl" else None,
    )
    if (dist.get_rank(), dist.get_world_size()) != (job.rank, job.workers):
        raise TrainerError(
            f"rank {dist.get_rank()} of {dist.get_world_size()} was started as node {job.rank} "
            f"of {job.workers}"
        )
    with watched(job.rank, job.workers, job.arguments.address, device):
        yield Rank(job.rank, job.workers, device)
    dist.destroy_process_group()


def backend_of(transport: str | None, device: torch.device) -> str:
    """torch's name of what carries collectives: the recipe's choice, else the device's own."""
    return transport or ("nccl" if device.type == "cuda" else "gloo")


def prefer_determinism() -> None:
    """Deterministic kernels where there are any; memory left as it was allocated (it is slow)."""
    # Not use_deterministic_algorithms: that imports torch's compiler, which takes seconds.
    torch.set_deterministic_debug_mode("warn")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def _device(kind: str) -> torch.device:
    if kind == "cpu":
        return torch.device("cpu")
    count = torch.cuda.device_count()
    if count == 0:
        raise TrainerError("the recipe asks for 'cuda', and torch sees no CUDA device here")
    index = 0 if count == 1 else int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(index)
    return torch.device("cuda", index)
