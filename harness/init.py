"""`harness init`: a plan to edit, made from a shipped one, with its own name and seed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.errors import BadInput, command
from harness.plan.kinds import Name
from harness.plan.load import load_plan
from harness.plan.plan import Plan
from harness.plan.pretty import pretty
from trainer import contract

_PLACES = (Path(__file__).parent.parent / "plans", Path(__file__).parent / "shipped_plans")
SHIPPED = next((place for place in _PLACES if place.is_dir()), _PLACES[0])
"""The plans that come with Harness: those of a checkout, else the copy inside the package."""
README = """# {name}

A study made from the plan `{base}`. Edit `plan.json`: the question, the arms, what is decided,
what it may cost. `docs/schemas/plan.json` describes its fields. Then:

```
harness check {folder}/plan.json     # what is wrong, what it can cost, how long it takes
harness prepare {folder}/plan.json   # fixes the inputs and writes prepared.json
{run}
```

The commit that holds prepared.json freezes the plan: a change after it is a new plan.
"""


ON_AWS = """harness admit {folder}/plan.json     # accepts the worst case and fixes a deadline
harness up {folder}/plan.json        # or: pulumi stack select --create {name} && pulumi up
harness run {folder}/plan.json       # the whole experiment; hosts end behind the gate
harness down {folder}/plan.json      # or: pulumi destroy, then harness cost resources.json"""
PULUMI = """name: harness
description: One fleet of GPU hosts for one preregistered experiment
main: {main}
runtime: python
backend:
  # Commands of Pulumi are typed in this folder; keep {state}/ as long as anything stands.
  url: file://./{state}
options:
  # A host that ended is known to be gone before anything is decided.
  refresh: always
"""
STATE = "pulumi-state"
PROGRAM = "stack"
MAIN = '''"""`pulumi up` runs this: the program that comes with the Harness of this environment."""

import runpy

runpy.run_module("infra", run_name="__main__")
'''


def make_project(folder: Path) -> Path | None:
    """Make a Pulumi project in `folder` unless one stands there or above; returns Pulumi.yaml.

    Its state is kept in a folder beside it, its login key is made for each fleet by admission.
    """
    if any((place / "Pulumi.yaml").exists() for place in (folder, *folder.resolve().parents)):
        return None
    (folder / STATE).mkdir(parents=True, exist_ok=True)
    (folder / PROGRAM).mkdir(exist_ok=True)
    contract.write_atomic(folder / PROGRAM / "__main__.py", MAIN.encode())
    path = folder / "Pulumi.yaml"
    contract.write_atomic(path, PULUMI.format(main=PROGRAM, state=STATE).encode())
    return path


def project_place(plans: Path) -> Path:
    """Where the project of a folder of plans stands: beside 'plans', else in the folder itself."""
    return plans.parent if plans.name == "plans" else plans


def make_plan(name: str, folder: Path, *, base: str = "quickstart") -> Path:
    """Make `folder`/`name` with plan.json and README.md; returns the path of plan.json.

    `folder` is where plans are kept; `base` is a shipped plan's name or the path of a plan. Raises
    BadInput for a bad name, a base that is none, or a folder that is already there; then nothing
    is written.
    """
    _check_name(name)
    target = folder / name
    value = _base_value(base, target)
    value["name"] = name
    value["seed"] = f"{name}-1"
    if target.exists():
        raise BadInput(
            "is already there, and nothing in it was changed",
            where=str(target),
            next_command=command("check", target / "plan.json"),
        )
    plan = Plan.model_validate_json(json.dumps(value), strict=True)
    try:
        target.mkdir(parents=True)
    except OSError as error:
        raise BadInput(f"cannot be made ({error.strerror})", where=str(target)) from None
    local = f"harness run {target}/plan.json --local"
    run = ON_AWS.format(folder=target, name=name) if plan.hosts.aws else local
    text = README.format(name=name, folder=target, base=base, run=run)
    if plan.hosts.aws:
        make_project(project_place(folder))
    contract.write_atomic(target / "README.md", text.encode())
    contract.write_atomic(target / "plan.json", (pretty(value) + "\n").encode())
    return target / "plan.json"


def shipped_plans() -> tuple[str, ...]:
    """Names of the plans that come with Harness."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/plan.json")))


def _check_name(name: str) -> None:
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        what = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise BadInput(what, where="name", next_command="harness init my-study") from None


def _base_value(base: str, target: Path) -> dict[str, Any]:
    """The base plan's JSON, with paths that are relative to it made relative to `target`."""
    if "/" in base or base.endswith(".json"):
        path = Path(base)
    elif base in shipped_plans():
        path = SHIPPED / base
    else:
        known = ", ".join(shipped_plans()) or "none"
        raise BadInput(f"no plan of the name '{base}' comes with Harness (known: {known})")
    loaded = load_plan(path)
    value: dict[str, Any] = contract.parse(loaded.data)
    for part in ("model", "trainer", "store"):
        section = value.get(part)
        if isinstance(section, dict) and isinstance(section.get("path"), str):
            section["path"] = os.path.relpath(loaded.folder / section["path"], target)
    return value
