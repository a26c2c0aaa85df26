"""Which run, or which plan, a person means by what they typed."""

from __future__ import annotations

from pathlib import Path

from harness.errors import BadInput
from harness.run import RunRecord
from harness.strict import load_file


def plan_name(given: str) -> str:
    """A plan's name from its name, its folder or its plan.json; '' stays ''."""
    path = Path(given)
    return (path.parent if path.name == "plan.json" else path).name


def run_folder(given: Path, runs: Path) -> Path:
    """The folder of the run that a path names, or of the newest run of the plan of that name.

    `runs` is where runs are kept. Raises BadInput for anything else, with what is there.
    """
    newest = runs / given / "latest"
    folder = newest if not _there(given) and _there(newest / "run.json") else given
    if not _there(folder / "run.json"):
        known = sorted(path.parent.parent.name for path in runs.glob("*/latest/run.json"))
        there = f"there are runs of {', '.join(known)}" if known else "there are no runs"
        raise BadInput(
            f"holds no run.json and names no plan that ran ({there} in {runs})",
            where=str(given),
            next_command="harness status",
        )
    load_file(RunRecord, folder / "run.json", next_command="harness status")
    return folder


def _there(path: Path) -> bool:
    """False also for what nothing can be called."""
    try:
        return path.exists()
    except OSError:
        return False
