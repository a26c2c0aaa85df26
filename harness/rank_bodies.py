"""Typed readers for the `body` of a trainer's receipt-R.json (docs/contract.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ConfigDict

from harness.plan.kinds import CountOrZero, Sha256
from harness.receipts import RankReceipt
from harness.strict import Model, build, load_file


class _Body(Model):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


B = TypeVar("B", bound="_Body")


class SeedBody(_Body):
    """Task `seed`."""

    parameter_root: Sha256
    parameters: CountOrZero
    config_sha256: Sha256
    tokenizer_sha256: Sha256


class CheckBody(_Body):
    """Task `check`."""

    all_reduce_ok: bool
    weighted_update_max_error: float
    workers_seen: CountOrZero


class ProbeBody(_Body):
    """Task `probe`."""

    microbatch: CountOrZero
    updates: CountOrZero
    seconds_per_update: float
    tokens_per_s: float
    peak_memory_bytes: CountOrZero
    out_of_memory: bool


class CheckpointCost(_Body):
    """One checkpoint."""

    update: CountOrZero
    stall_seconds: float
    """Training stood still."""
    copy_seconds: float
    write_seconds: float
    """In the background."""
    bytes: CountOrZero


class TrainBody(_Body):
    """Task `train`."""

    updates: CountOrZero
    documents: CountOrZero
    tokens: CountOrZero
    targets: CountOrZero
    weighted_targets: float
    parameter_root: Sha256
    parameters: CountOrZero
    final_loss: float
    exchange_sent_bytes: CountOrZero
    exchange_received_bytes: CountOrZero
    checkpoints: tuple[CheckpointCost, ...] = ()
    resumed_from: CountOrZero | None = None
    """Updates that were taken over from an earlier attempt's checkpoint."""


class RoleTally(_Body):
    """One role's generation."""

    cases: CountOrZero
    generated_tokens: CountOrZero
    seconds: float


class ProbeTally(_Body):
    """One retention probe set."""

    documents: CountOrZero
    mean_loss: float
    seconds: float


class EvaluateBody(_Body):
    """Task `evaluate`."""

    roles: dict[str, RoleTally]
    probes: dict[str, ProbeTally]


class CompareBody(_Body):
    """Task `compare`."""

    relative_l2: float
    max_abs: float
    tensors: CountOrZero
    root: Sha256
    against_root: Sha256


class ServeBody(_Body):
    """Task `serve`."""

    requests: dict[str, CountOrZero]
    generated_tokens: CountOrZero
    seconds: float


def read_rank_receipt(path: Path) -> RankReceipt:
    """A trainer's receipt. Raises BadInput naming file and field."""
    return load_file(RankReceipt, path)


def body_of(model: type[B], receipt: RankReceipt) -> B:
    """The receipt's body as its task's type. Raises BadInput."""
    return build(model, receipt.body, where=f"receipt-{receipt.rank}.json of task {receipt.task}")
