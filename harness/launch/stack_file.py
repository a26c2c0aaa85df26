"""The Pulumi project of a plan and its stack's configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.errors import BadInput
from harness.fleet.admitted import AdmittedFleet
from harness.launch.fleets import FleetPlace
from trainer import contract

PROJECT = "harness"
ADMITTED = f"{PROJECT}:admitted"
RUNS = f"{PROJECT}:runs"


def project_folder(plan_folder: Path) -> Path:
    """The nearest folder at or above the plan's that holds Pulumi.yaml. Raises BadInput."""
    for place in (plan_folder.resolve(), *plan_folder.resolve().parents):
        if (place / "Pulumi.yaml").is_file():
            return place
    raise BadInput(
        "no Pulumi.yaml stands at or above the plan",
        where=str(plan_folder),
        next_command="harness init NAME (writes one), or copy it from a Harness checkout",
    )


def stack_file(project: Path, stack: str) -> Path:
    """Pulumi.STACK.yaml of the project."""
    return project / f"Pulumi.{stack}.yaml"


def write_configuration(project: Path, runs: Path, admitted: AdmittedFleet) -> Path:
    """Put the admitted fleet into the stack's configuration; other settings stay as they are."""
    import yaml

    path = stack_file(project, admitted.study)
    value: dict[str, Any] = {}
    if path.exists():
        loaded = yaml.safe_load(path.read_text())
        value = loaded if isinstance(loaded, dict) else {}
    config = value.get("config") or {}
    text = contract.canonical(admitted.to_json()).decode()
    value["config"] = {**config, ADMITTED: text, RUNS: str(runs.resolve())}
    contract.write_atomic(path, yaml.safe_dump(value, sort_keys=True, width=1 << 20).encode())
    return path


def project_of(place: FleetPlace) -> Path:
    """The project folder that the fleet was admitted from. Raises BadInput when it is gone."""
    for entry in place.entries():
        if entry.kind == "note" and entry.key == "project":
            return project_folder(Path(str(entry.data["folder"])))
    raise BadInput("the journal does not name the project", where=str(place.journal_path))
