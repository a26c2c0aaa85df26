"""The recipe: what a task is told. Standard library only, so that a dry run is quick.

Every field is required, and unknown ones are refused: a recipe says everything or is not run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from trainer.contract import CONTRACT, ContractError, parse
from trainer.errors import RecipeError
from trainer.fields import Fields


@dataclass(frozen=True, kw_only=True)
class Common:
    """What every task is told."""

    task: str
    device: str
    """'cpu' or 'cuda'."""
    threads: int | None
    """CPU threads of this process; None leaves the choice to torch."""
    transport: str | None = None
    """'gloo': what ranks say to each other goes through host memory, also between GPUs, and ranks
    may then share one. None: NCCL between GPUs, gloo between CPUs."""


@dataclass(frozen=True)
class Source:
    """Where a seed model comes from."""

    kind: str
    """'package' (a GGUF file), 'hub' (a snapshot's files) or 'trainer' (made here)."""
    file: str | None


@dataclass(frozen=True, kw_only=True)
class Seed(Common):
    """The task `seed`."""

    source: Source


@dataclass(frozen=True, kw_only=True)
class Check(Common):
    """The task `check`."""

    seed: str


@dataclass(frozen=True)
class Optimizer:
    """AdamW (Loshchilov and Hutter 2019)."""

    lr: float
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float


@dataclass(frozen=True)
class Schedule:
    """Learning rate by update."""

    kind: str
    """'constant', 'linear' or 'cosine'."""
    warmup_updates: int
    floor: float
    """Share of lr at the last update, for linear and cosine."""


@dataclass(frozen=True)
class Exchange:
    """How workers agree. A field that a kind does not have is None."""

    kind: str
    """'none', 'dense', 'powersgd' or 'local-windows'."""
    rank: int | None = None
    error_feedback: bool | None = None
    residual: str | None = None
    dense_updates: int | None = None
    min_compression_rate: float | None = None
    epsilon: float | None = None
    window: int | None = None
    """Updates that workers take apart before they meet."""
    outer_lr: float | None = None
    outer_momentum: float | None = None
    factors: str = "fp32"
    """'fp32' or 'bf16': in what factors travel."""
    dense_precision: str = "fp32"
    """'fp32' or 'bf16': in what the large tensors of dense updates travel."""
    warmup_updates: int | None = None
    """Updates after the dense ones that have a higher rank; None for none."""
    warmup_rank: int | None = None


@dataclass(frozen=True)
class Packed:
    """Documents behind each other in one row instead of padded side by side."""

    compiled: bool
    """Layers are compiled; every row is then filled up to one length."""
    residual: str
    """'fp32' or 'bf16': the stream that layers add to (bf16 only with autocast)."""
    head: str
    """Logits: 'rounded' as autocast has them, 'wide' (FP32 results) or 'fp32'."""


@dataclass(frozen=True, kw_only=True)
class Train(Common):
    """The task `train`: one arm."""

    seed: str
    arm: str
    corpus: str
    updates: int
    microbatch: int
    """Documents that go through the network at once; with `packed`, tokens."""
    optimizer: Optimizer
    schedule: Schedule
    clip_norm: float | None
    autocast: str | None
    checkpointing: bool
    exchange: Exchange
    preserve: str
    """'weights' or 'full-state'."""
    checkpoint_updates: int | None = None
    """Updates between checkpoints; None: none are written."""
    packed: Packed | None = None


@dataclass(frozen=True, kw_only=True)
class Probe(Train):
    """The task `probe`: the recipe of an arm, and how many updates to try."""

    trial_updates: int


@dataclass(frozen=True, kw_only=True)
class Evaluate(Common):
    """The task `evaluate`."""

    cases: tuple[str, ...]
    retention: tuple[str, ...]
    max_new_tokens: int
    batch: int | None
    """Prompts at once; None: as many as memory holds."""
    end_tokens: tuple[int, ...]
    autocast: str | None


@dataclass(frozen=True, kw_only=True)
class Compare(Common):
    """The task `compare`."""

    against: str


@dataclass(frozen=True, kw_only=True)
class Serve(Common):
    """The task `serve`: one replica."""

    parameter_root: str
    """What the weights must hash to before anything is answered."""
    max_new_tokens: int
    """The most that one request may ask for."""
    context: int
    """Prompt and answer of one request together, in tokens."""
    end_tokens: tuple[int, ...]
    slots: int
    """Requests generated at once."""
    queue: int
    """Requests that may wait besides; more are refused."""
    body_bytes: int
    cache: bool
    """Whether answers are kept by request identity, for retries."""
    autocast: str | None


def read(path: str | Path) -> Common:
    """The recipe in a file. Raises RecipeError with one sentence that says what is wrong."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise RecipeError(f"the recipe {path} cannot be read: {error.strerror}") from None
    try:
        return from_value(parse(data, where=f"the recipe {path}"))
    except ContractError as error:
        raise RecipeError(str(error)) from None


def from_value(value: Any) -> Common:
    """The recipe that a JSON value holds. Raises RecipeError."""
    fields = Fields(value, "the recipe")
    fields.choice("contract", CONTRACT)
    task = fields.choice("task", *_TASKS)
    common = {
        "task": task,
        "device": fields.choice("device", "cpu", "cuda"),
        "threads": fields.integer_or_null("threads", 1),
        "transport": fields.choice("transport", "gloo") if fields.has("transport") else None,
    }
    recipe = _TASKS[task](fields, common)
    fields.done()
    return recipe


def _seed(fields: Fields, common: dict[str, Any]) -> Seed:
    inner = fields.inner("source")
    kind = inner.choice("kind", "package", "hub", "trainer")
    source = Source(kind, inner.text("file") if kind == "package" else None)
    inner.done()
    return Seed(source=source, **common)


def _check(fields: Fields, common: dict[str, Any]) -> Check:
    return Check(seed=fields.text("seed"), **common)


def _train(fields: Fields, common: dict[str, Any]) -> Train:
    return _fitting(Train(**_train_fields(fields), **common))


def _probe(fields: Fields, common: dict[str, Any]) -> Probe:
    trial_updates = fields.integer("trial_updates", 1)
    return _fitting(Probe(trial_updates=trial_updates, **_train_fields(fields), **common))


T = TypeVar("T", bound=Train)


def _fitting(recipe: T) -> T:
    narrow = recipe.packed is not None and recipe.packed.residual == "bf16"
    if narrow and recipe.autocast is None:
        raise RecipeError("the recipe, 'packed': 'residual' is 'bf16' and 'autocast' is null")
    return recipe


def _train_fields(fields: Fields) -> dict[str, Any]:
    return {
        "seed": fields.text("seed"),
        "arm": fields.name("arm"),
        "corpus": fields.name("corpus"),
        "updates": fields.integer("updates", 1),
        "microbatch": fields.integer("microbatch", 1),
        "optimizer": _optimizer(fields.inner("optimizer")),
        "schedule": _schedule(fields.inner("schedule")),
        "clip_norm": fields.positive_or_null("clip_norm"),
        "autocast": fields.choice_or_null("autocast", "bf16"),
        "checkpointing": fields.flag("checkpointing"),
        "exchange": _exchange(fields.inner("exchange")),
        "preserve": fields.choice("preserve", "weights", "full-state"),
        "checkpoint_updates": _checkpoint(
            fields.inner("checkpoint") if fields.has("checkpoint") else None
        ),
        "packed": _packed(fields.inner("packed") if fields.has("packed") else None),
    }


def _checkpoint(inner: Fields | None) -> int | None:
    """How often the state is stored; left out, it never is."""
    if inner is None:
        return None
    updates = inner.integer("every_updates", 1)
    inner.done()
    return updates


def _packed(inner: Fields | None) -> Packed | None:
    """The one field of an arm that may be left out: then documents are padded."""
    if inner is None:
        return None
    packed = Packed(
        compiled=inner.flag("compiled"),
        residual=inner.choice("residual", "fp32", "bf16"),
        head=inner.choice("head", "rounded", "wide", "fp32"),
    )
    inner.done()
    return packed


def _optimizer(fields: Fields) -> Optimizer:
    fields.choice("kind", "adamw")
    optimizer = Optimizer(
        lr=fields.number("lr", 0, open_ends=True),
        beta1=_beta(fields, "beta1"),
        beta2=_beta(fields, "beta2"),
        epsilon=fields.number("epsilon", 0, open_ends=True),
        weight_decay=fields.number("weight_decay", 0),
    )
    fields.done()
    return optimizer


def _beta(fields: Fields, name: str) -> float:
    return fields.number(name, 0, math.nextafter(1, 0))


def _schedule(fields: Fields) -> Schedule:
    schedule = Schedule(
        kind=fields.choice("kind", "constant", "linear", "cosine"),
        warmup_updates=fields.integer("warmup_updates", 0),
        floor=fields.number("floor", 0, 1),
    )
    fields.done()
    return schedule


def _exchange(fields: Fields) -> Exchange:
    kind = fields.choice("kind", "none", "dense", "powersgd", "local-windows")
    exchange = Exchange(kind)
    if kind == "powersgd":
        exchange = Exchange(
            kind,
            rank=fields.integer("rank", 1),
            error_feedback=fields.flag("error_feedback"),
            residual=fields.choice("residual", "averaged", "local"),
            dense_updates=fields.integer("dense_updates", 0),
            min_compression_rate=fields.number("min_compression_rate", 0, open_ends=True),
            epsilon=fields.number("epsilon", 0),
            **_lean(fields),
        )
        if exchange.factors == "bf16" and exchange.residual == "local":
            raise RecipeError(
                "the recipe, 'exchange': 'factors' is 'bf16' and 'residual' is 'local', which "
                "would lose what rounding takes"
            )
    if kind == "local-windows":
        exchange = Exchange(
            kind,
            window=fields.integer("window", 1),
            outer_lr=fields.number("outer_lr", 0, open_ends=True),
            outer_momentum=fields.number("outer_momentum", 0, math.nextafter(1, 0)),
        )
    fields.done()
    return exchange


def _lean(fields: Fields) -> dict[str, Any]:
    """PowerSGD's fields that may be left out."""
    found: dict[str, Any] = {
        name: fields.choice(name, "fp32", "bf16")
        for name in ("factors", "dense_precision")
        if fields.has(name)
    }
    if fields.has("warmup"):
        inner = fields.inner("warmup")
        found["warmup_updates"] = inner.integer("updates", 1)
        found["warmup_rank"] = inner.integer("rank", 1)
        inner.done()
    return found


def _evaluate(fields: Fields, common: dict[str, Any]) -> Evaluate:
    return Evaluate(
        cases=fields.names("cases"),
        retention=fields.names("retention"),
        max_new_tokens=fields.integer("max_new_tokens", 1),
        batch=fields.integer_or_null("batch", 1),
        end_tokens=fields.token_ids("end_tokens"),
        autocast=fields.choice_or_null("autocast", "bf16"),
        **common,
    )


def _compare(fields: Fields, common: dict[str, Any]) -> Compare:
    return Compare(against=fields.text("against"), **common)


def _serve(fields: Fields, common: dict[str, Any]) -> Serve:
    return Serve(
        parameter_root=fields.text("parameter_root"),
        max_new_tokens=fields.integer("max_new_tokens", 1),
        context=fields.integer("context", 2),
        end_tokens=fields.token_ids("end_tokens"),
        slots=fields.integer("slots", 1),
        queue=fields.integer("queue", 0),
        body_bytes=fields.integer("body_bytes", 1),
        cache=fields.flag("cache"),
        autocast=fields.choice_or_null("autocast", "bf16"),
        **common,
    )


_TASKS = {
    "seed": _seed,
    "check": _check,
    "probe": _probe,
    "train": _train,
    "evaluate": _evaluate,
    "compare": _compare,
    "serve": _serve,
}

ONE_WORKER = frozenset({"seed", "evaluate", "compare", "serve"})
"""Tasks that run on one worker only."""
