"""receipt-R.json: what one rank's process observed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import Any

import torch

from trainer.contract import CONTRACT, hash_file, tree_hash, write_json
from trainer.job import Job
from trainer.ranks import Rank
from trainer.traffic import Counters

_REPORTED = ("torch", "transformers", "safetensors", "tokenizers", "gguf", "numpy")


def write_receipt(
    job: Job,
    rank: Rank,
    body: Mapping[str, Any],
    *,
    inputs: Mapping[str, Path],
    model_root: str | None = None,
    timers: Mapping[str, float] | None = None,
) -> None:
    """Write this rank's receipt, the last file of an attempt that succeeded.

    `inputs` are the files that were read, by the name they have in --inputs.
    """
    peak, peak_of = rank.peak_memory()
    name = job.arguments.interface
    receipt = {
        "contract": CONTRACT,
        "task": job.recipe.task,
        "rank": rank.rank,
        "workers": rank.workers,
        "recipe_sha256": hash_file(job.arguments.recipe)[0],
        "source_sha256": tree_hash(job.source),
        "inputs": {key: hash_file(path)[0] for key, path in sorted(inputs.items())},
        "model_root": model_root,
        "device": rank.device.type,
        "device_name": rank.device_name(),
        "versions": versions(),
        "threads": torch.get_num_threads(),
        "peak_memory_bytes": peak,
        "peak_memory_of": peak_of,
        "body": dict(body),
    }
    counted = Counters.read(name).since(job.beginning.traffic)
    process = job.beginning.elapsed()
    receipt["traffic"] = {
        "interface": name,
        "sent_bytes": counted.sent_bytes,
        "received_bytes": counted.received_bytes,
    }
    receipt["timers"] = {**(timers or {}), "process": process, "allocated": process}
    write_json(job.out / f"receipt-{rank.rank}.json", receipt)


def versions() -> dict[str, str]:
    """Versions of what computes; of a package that is not installed, nothing."""
    found = {"python": python_version()}
    for name in _REPORTED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    if torch.cuda.is_available():
        found["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())  # type: ignore[no-untyped-call]
    return found
