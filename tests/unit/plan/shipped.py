"""The shipped plans, also with values changed, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.plan import LoadedPlan, load_plan
from harness.plan.check import CheckReport, check_plan
from harness.prices import load_prices

PLANS = Path(__file__).parents[3] / "plans"
PRICES = load_prices("us-east-1")


def loaded(folder: Path, base: str, changes: dict[str, object]) -> LoadedPlan:
    """A shipped plan with values set at JSON pointers."""
    value: Any = json.loads((PLANS / base / "plan.json").read_bytes())
    for pointer, new in changes.items():
        *path, last = pointer.strip("/").split("/")
        here = value
        for step in path:
            here = here[int(step)] if isinstance(here, list) else here[step]
        here[int(last) if isinstance(here, list) else last] = new
    (folder / "plan.json").write_text(json.dumps(value))
    return load_plan(folder)


def report(folder: Path, base: str, changes: dict[str, object]) -> CheckReport:
    return check_plan(loaded(folder, base, changes), prices=PRICES)


def shipped(name: str) -> CheckReport:
    return check_plan(load_plan(PLANS / name), prices=PRICES)


QUICK, COOP, BATCHED = "quickstart", "cooperative-learning", "batched-learning"
