"""A complete small plan for the torch-free toy trainer, as plain JSON."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

TOY = Path(__file__).parent / "toy_trainer"

PLAN: dict[str, Any] = {
    "schema": "harness/plan/1",
    "name": "toy",
    "question": "Does the whole pipeline hold together?",
    "seed": "toy-1",
    "trainer": {"kind": "tree", "path": str(TOY)},
    "environment": "as-found",
    "model": {"kind": "trainer"},
    "tokenizer": {"kind": "model"},
    "chat": {"form": "chatml"},
    "data": {
        "tasks": {
            "families": ["lookup", "filter"],
            "rows": 3,
            "absent_every": 5,
            "train_wordings": [0, 1],
            "test_wordings": [0, 1, 2, 3],
        },
        "roles": {"train_tasks": 24, "train_replay": 8, "development": 6, "test": 16},
        "replay": {"kind": "generated"},
        "retention": [{"name": "prose", "source": {"kind": "passages"}, "count": 4}],
        "weights": {"task": 8, "replay": 1},
    },
    "recipe": {
        "updates": 4,
        "global_batch": 8,
        "context_tokens": 4096,
        "optimizer": {
            "kind": "adamw",
            "lr": 0.001,
            "beta1": 0.9,
            "beta2": 0.999,
            "epsilon": 1e-8,
            "weight_decay": 0.01,
        },
        "schedule": {"kind": "constant", "warmup_updates": 1},
        "clip_norm": 1.0,
    },
    "arms": [
        {
            "name": "single",
            "corpus": "clean",
            "workers": 1,
            "microbatch": 4,
            "exchange": {"kind": "none"},
            "preserve": "weights",
            "attempts": 2,
            "limits": {"seconds": 300, "traffic_gb": 10},
        },
        {
            "name": "pair",
            "corpus": "clean",
            "workers": 2,
            "microbatch": 4,
            "exchange": {"kind": "dense"},
            "preserve": "weights",
            "attempts": 2,
            "limits": {"seconds": 300, "traffic_gb": 10},
        },
    ],
    "evaluation": {"max_new_tokens": 96, "batch": 8},
    "decisions": [
        {
            "name": "pair-gains",
            "claim": "The pair answers more than the untrained seed.",
            "statistic": "accuracy-difference",
            "candidate": "pair",
            "reference": "reference",
            "bound": "lower",
            "margin": 0.0,
            "z": 2.576,
        },
        {
            "name": "ranks-agree",
            "claim": "Both workers end with the same parameters.",
            "statistic": "parameter-agreement",
            "candidate": "pair",
            "bound": "at-least",
            "margin": 1.0,
        },
    ],
    "hosts": {"local": {"count": 2, "device": "cpu", "threads": 1}},
    "budget": {
        "ceiling_usd": "1",
        "allowance_usd": "0",
        "deadline_s": 1800,
        "traffic_gb_per_host": 10,
        "retention_days": 0,
        "attempts": 2,
    },
}


def toy_plan(**changes: Any) -> dict[str, Any]:
    """The plan with top-level fields replaced."""
    plan = copy.deepcopy(PLAN)
    plan.update(changes)
    return plan


LAUNCH = """#!/usr/bin/env python3
import os, runpy, sys
from pathlib import Path
here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))
os.environ.update({settings!r})
sys.argv[0] = str(here / "toy")
runpy.run_path(str(here / "toy"), run_name="__main__")
"""


def toy_with(folder: Path, **settings: str) -> dict[str, str]:
    """A copy of the toy trainer with settings built in (TOY_FAULT, TOY_UPDATE_SECONDS)."""
    own = folder / "own-trainer"
    shutil.copytree(TOY, own, ignore=shutil.ignore_patterns("__pycache__"))
    (own / "launch").rename(own / "toy")
    launch = own / "launch"
    launch.write_text(LAUNCH.replace("{settings!r}", repr(settings)))
    launch.chmod(0o755)
    return {"kind": "tree", "path": str(own)}


def write_plan(folder: Path, plan: dict[str, Any], *, repository: bool = True) -> Path:
    """plan.json in `folder`/plans/NAME, inside a fresh git repository."""
    place = folder / "plans" / str(plan["name"])
    place.mkdir(parents=True)
    path = place / "plan.json"
    path.write_text(json.dumps(plan, indent=2) + "\n")
    if repository:
        subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    return path


AFTER = """
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if "--dry-run" not in sys.argv:
    import json
    out, rank = Path(words["--out"]), words["--node-rank"]
    recipe = json.loads(Path(words["--recipe"]).read_text())
    task = recipe["task"]
    exec((here / "after.py").read_text())
"""


def toy_after(folder: Path, code: str) -> dict[str, str]:
    """A copy of the toy trainer that runs `code` once it is done.

    The code is given out, rank, recipe and task.
    """
    chosen = toy_with(folder)
    own = Path(chosen["path"])
    (own / "after.py").write_text(code)
    (own / "launch").write_text((own / "launch").read_text() + AFTER)
    return chosen
