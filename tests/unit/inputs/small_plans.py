"""A small plan for tests, and a tokenizer of 256 bytes and the control tokens."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from harness.plan import Plan
from harness.strict import build

SMALL: dict[str, Any] = {
    "schema": "harness/plan/1",
    "name": "small",
    "question": "Does it learn?",
    "seed": "a seed",
    "trainer": {"kind": "bundled"},
    "environment": "as-found",
    "model": {"kind": "trainer"},
    "tokenizer": {"kind": "model"},
    "chat": {"form": "chatml"},
    "data": {
        "tasks": {
            "families": ["lookup", "filter", "total", "sort"],
            "rows": 3,
            "absent_every": 5,
            "train_wordings": [0, 1],
            "test_wordings": [0, 1, 2, 3],
        },
        "roles": {"train_tasks": 48, "train_replay": 16, "development": 8, "test": 24},
        "replay": {"kind": "generated"},
        "retention": [
            {"name": "prose", "source": {"kind": "passages"}, "count": 12},
            {"name": "like-replay", "source": {"kind": "generated"}, "count": 6},
        ],
        "damage": {"rule": "sha256-mod", "modulus": 4, "remainder": 0},
        "weights": {"task": 8.0, "replay": 1.0},
    },
    "recipe": {
        "updates": 10,
        "global_batch": 8,
        "context_tokens": 2048,
        "optimizer": {
            "kind": "adamw",
            "lr": 1e-4,
            "beta1": 0.9,
            "beta2": 0.95,
            "epsilon": 1e-8,
            "weight_decay": 0.0,
        },
        "schedule": {"kind": "constant", "warmup_updates": 2},
    },
    "arms": [
        {
            "name": name,
            "corpus": corpus,
            "workers": 1,
            "exchange": {"kind": "none"},
            "preserve": "weights",
            "attempts": 1,
            "limits": {"seconds": 60, "traffic_gb": 1.0},
        }
        for name, corpus in (("clean", "clean"), ("spoilt", "damaged"))
    ],
    "evaluation": {"max_new_tokens": 96, "batch": 8},
    "decisions": [],
    "hosts": {"local": {"count": 1}},
    "budget": {
        "ceiling_usd": "0",
        "allowance_usd": "0",
        "deadline_s": 600,
        "traffic_gb_per_host": 1.0,
        "retention_days": 0,
        "attempts": 1,
    },
}


def small_plan(changes: dict[str, Any] | None = None) -> Plan:
    """The small plan, with changes by dotted path."""
    value = copy.deepcopy(SMALL)
    for path, new in (changes or {}).items():
        *parents, last = path.split(".")
        place = value
        for parent in parents:
            place = place[parent]
        place[last] = new
    return build(Plan, value, where="small plan")


def byte_tokenizer(*, special: bool = True, without: str = "") -> Tokenizer:
    """One token a byte, no merges, and the two control tokens after them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    for token in ("<|im_start|>", "<|im_end|>"):
        if token != without:
            tokenizer.add_tokens([AddedToken(token, special=special, normalized=False)])
    return tokenizer


def save_tokenizer(folder: Path, **options: Any) -> Path:
    """tokenizer.json of `byte_tokenizer` in a folder."""
    path = folder / "tokenizer.json"
    byte_tokenizer(**options).save(str(path))
    return path
