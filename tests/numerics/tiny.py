"""Tiny models, documents and recipes that the tests of this folder share."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from trainer import recipe as recipes
from trainer.batches import Document
from trainer.contract import CONTRACT
from trainer.seed import write_seed
from trainer.seed_tiny import tiny_model

WORDS = 259


def write_model(folder: Path) -> Path:
    """The trainer's own tiny Llama in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_seed(folder, tiny_model())
    return folder


def draw_documents(count: int, seed: int = 1, longest: int = 40) -> list[Document]:
    """Unequal lengths, unequal weights, one or two target spans, prompts that are no target."""
    draw = random.Random(seed)
    documents = []
    for number in range(count):
        length = draw.randint(6, longest)
        tokens = tuple(draw.randrange(WORDS) for _ in range(length))
        middle = draw.randint(2, length - 2)
        spans = [(middle, draw.randint(middle + 1, length))]
        if number % 3 == 0:
            spans.insert(0, (1, 2))
        weight = draw.choice((1.0, 8.0, 2.5))
        documents.append(Document(f"d{number}", tokens, tuple(spans), weight))
    return documents


def line(document: Document) -> dict[str, Any]:
    """A line of train.CORPUS.jsonl."""
    return {
        "id": document.id,
        "kind": "task",
        "tokens": list(document.tokens),
        "targets": [list(span) for span in document.targets],
        "weight": document.weight,
    }


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_inputs(folder: Path, documents: list[Document], schedule: list[list[int]]) -> Path:
    """Prepared inputs for training, cases and retention."""
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / "train.clean.jsonl", [line(document) for document in documents])
    (folder / "schedule.json").write_text(json.dumps({"updates": schedule}))
    cases = [{"id": d.id, "tokens": list(d.tokens)} for d in documents[:7]]
    write_jsonl(folder / "test.cases.jsonl", cases)
    probes = [{k: v for k, v in line(d).items() if k in ("id", "tokens", "targets")}
              for d in documents[:9]]  # fmt: skip
    write_jsonl(folder / "retention.plain.jsonl", probes)
    return folder


def common(task: str, **fields: Any) -> dict[str, Any]:
    return {"contract": CONTRACT, "task": task, "device": "cpu", "threads": 1, **fields}


def train_recipe(**changes: Any) -> dict[str, Any]:
    """A recipe of the task `train`, with changes to its top-level fields."""
    return common("train") | {
        "seed": "one",
        "arm": "a",
        "corpus": "clean",
        "updates": 4,
        "microbatch": 3,
        "optimizer": {"kind": "adamw", "lr": 1e-2, "beta1": 0.9, "beta2": 0.95,
                      "epsilon": 1e-4, "weight_decay": 0.1},
        "schedule": {"kind": "linear", "warmup_updates": 2, "floor": 0.25},
        "clip_norm": 0.5,
        "autocast": None,
        "checkpointing": False,
        "exchange": {"kind": "none"},
        "preserve": "weights",
    } | changes  # fmt: skip


def powersgd(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "powersgd",
        "rank": 4,
        "error_feedback": True,
        "residual": "averaged",
        "dense_updates": 0,
        "min_compression_rate": 0.1,
        "epsilon": 1e-8,
    } | changes


def packed(**changes: Any) -> dict[str, Any]:
    """Documents in rows; `microbatch` then counts tokens."""
    return {"compiled": False, "residual": "fp32", "head": "rounded"} | changes


def train(**changes: Any) -> recipes.Train:
    """The same recipe, parsed."""
    recipe = recipes.from_value(train_recipe(**changes))
    assert isinstance(recipe, recipes.Train)
    return recipe


def exchange_recipe(value: dict[str, Any]) -> recipes.Exchange:
    return train(exchange=value).exchange
