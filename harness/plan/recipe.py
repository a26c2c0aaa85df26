"""How arms are trained: what all arms share (`Recipe`) and what each one sets (`Arm`)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.plan.kinds import Count, CountOrZero, Fraction, Misfit, Name, NotNegative, Positive
from harness.plan.parent import Start
from harness.strict import Model


class AdamW(Model):
    """Decoupled weight decay (Loshchilov and Hutter 2019), FP32 moments."""

    kind: Literal["adamw"]
    lr: Positive
    beta1: Annotated[float, Field(ge=0, lt=1)]
    beta2: Annotated[float, Field(ge=0, lt=1)]
    epsilon: Positive
    weight_decay: NotNegative


class Schedule(Model):
    """Learning rate by update: linear warm-up to lr, then constant, linear or cosine."""

    kind: Literal["constant", "linear", "cosine"]
    warmup_updates: CountOrZero
    floor: Fraction = 0.0
    """Share of lr that linear and cosine end at."""


class Checkpoints(Model):
    """How often every worker stores all that its next update depends on, on its own disk.

    A failed attempt is then continued from the newest checkpoint that all workers hold whole,
    and ends bit for bit where the unbroken one would.
    """

    every_updates: Count
    off_host: bool = False
    """Also in the store, from where a host that lost its files gets them back."""


class Packed(Model):
    """Documents behind each other in rows instead of padded side by side: nothing is computed
    for padding, and an update takes as few rows as fit.
    """

    compiled: bool
    """Layers are compiled by torch before the first update; arms then start slower."""
    residual: Literal["fp32", "bf16"] = "fp32"
    """The stream that layers add to; bf16 only with autocast."""
    head: Literal["rounded", "wide", "fp32"] = "rounded"
    """Logits: rounded to bf16 as autocast has them, bf16 operands with FP32 results, or FP32."""


class Recipe(Model):
    """What every arm shares."""

    updates: Count
    """The predetermined last update: its weights are the candidate."""
    global_batch: Count
    """Documents an update, over all workers."""
    context_tokens: Annotated[int, Field(ge=16, le=131072)]
    """Longest document or prompt with its answer. Longer is an error at prepare."""
    optimizer: AdamW
    schedule: Schedule
    clip_norm: Positive | None = None
    """Bound on the global gradient's L2 norm."""
    autocast: Literal["bf16"] | None = None
    """Forward and backward precision; parameters, gradients and moments are FP32."""
    checkpointing: bool = False
    """Recompute activations in the backward pass."""
    checkpoints: Checkpoints | None = None
    """Absent: none are stored, and a failed attempt begins again."""
    packed: Packed | None = None
    """Absent: documents are padded to the longest of their microbatch."""

    @model_validator(mode="after")
    def _narrow_stream_fits(self) -> Recipe:
        if self.packed and self.packed.residual == "bf16" and self.autocast is None:
            raise Misfit("/packed/residual", "a bf16 residual stream needs the autocast bf16")
        return self


class NoExchange(Model):
    """One worker: nothing is exchanged."""

    kind: Literal["none"]


class DenseExchange(Model):
    """Every gradient summed over workers, in FP32."""

    kind: Literal["dense"]


class RankWarmup(Model):
    """Factors of a higher rank for a while; what is then not sent goes on being kept."""

    updates: Count
    rank: Count


class PowerSGD(Model):
    """Rank-r factors of each matrix's gradient (Vogels et al. 2019), the rest dense."""

    kind: Literal["powersgd"]
    rank: Count
    error_feedback: bool
    residual: Literal["averaged", "local"]
    """What stays for the next update: local matrix minus the averaged reconstruction, or minus
    the local projection."""
    dense_updates: CountOrZero
    """Updates at the start that are exchanged dense."""
    min_compression_rate: Positive
    """A matrix is compressed when its factors are at least this many times smaller."""
    epsilon: NotNegative
    """Added in orthogonalisation."""
    factors: Literal["fp32", "bf16"] = "fp32"
    """Precision in which factors travel; bf16 only with the residual 'averaged', which keeps what
    rounding takes."""
    dense_precision: Literal["fp32", "bf16"] = "fp32"
    """Precision in which the large tensors of dense updates travel."""
    warmup: RankWarmup | None = None
    """Updates of a higher rank, after the dense ones."""

    @model_validator(mode="after")
    def _rounding_is_kept(self) -> PowerSGD:
        if self.factors == "bf16" and self.residual == "local":
            raise Misfit("/factors", "bf16 factors need the residual 'averaged'")
        return self


class LocalWindows(Model):
    """Workers step apart and meet at the end of each window (DiLoCo: Douillard et al. 2023)."""

    kind: Literal["local-windows"]
    window: Count
    """Updates that a worker takes alone, with the arm's optimizer. The updates of the recipe must
    be a multiple of it, so that the candidate is what all workers agreed on."""
    outer_lr: Positive
    """Step along the workers' mean difference."""
    outer_momentum: Annotated[float, Field(ge=0, lt=1)]
    """Nesterov's, on that difference."""


Exchange = Annotated[
    NoExchange | DenseExchange | PowerSGD | LocalWindows, Field(discriminator="kind")
]


class ArmLimits(Model):
    """At either limit the arm is ended and counts as failed."""

    seconds: Count
    traffic_gb: Positive
    """Whole-host transmitted gigabytes (10^9 bytes), all workers of the arm together."""


class Arm(Model):
    """One training run inside the study."""

    name: Name
    corpus: Literal["clean", "damaged"]
    start: Start | None = None
    """The model it starts from: 'seed', or 'parent' for the plan's parent; absent: the seed."""
    workers: Count
    microbatch: Count | None = None
    """Documents a worker puts through at once (tokens where the recipe packs them); absent: probe
    chooses, then it is frozen."""
    exchange: Exchange
    preserve: Literal["weights", "full-state"]
    attempts: Annotated[int, Field(ge=1, le=10)]
    limits: ArmLimits

    @model_validator(mode="after")
    def _exchange_fits(self) -> Arm:
        if (self.workers == 1) != (self.exchange.kind == "none"):
            raise Misfit(
                "/exchange",
                f"an arm of {self.workers} worker(s) cannot have the exchange "
                f"'{self.exchange.kind}'",
            )
        return self
