"""What judged the study, kept with it: this program's own source and the objective test.

One member of the archive, `programs.tar` (the form of harness/seal/tar.py, not compressed).
Unpacked it runs: `PYTHONPATH=programs python -m harness verify ...`, in an environment of
requirements/local.txt. The objective test is of Harness's own trainer; a trainer of the user's own
is whole in `source/trainer`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import harness
import trainer
from harness.errors import BadInput
from harness.seal.tar import write_tar

MEMBER = "programs.tar"
OBJECTIVE = ("conftest.py", "ranks_pool.py", "test_objective.py", "tiny.py", "work.py")
LEFT_OUT = ("__pycache__", "shipped_plans", "shipped_tests")


def write_snapshot(path: Path, work: Path) -> None:
    """Write `path`; `work` is a folder that is made and removed. Raises BadInput."""
    shutil.rmtree(work, ignore_errors=True)
    for name, source in _files():
        target = work / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    try:
        write_tar(work, path)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _files() -> Iterator[tuple[str, Path]]:
    """(name in the snapshot, file)."""
    package, own = Path(harness.__file__).parent, Path(trainer.__file__).parent
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package)
        if path.is_file() and not set(inside.parts) & set(LEFT_OUT):
            yield f"harness/{inside.as_posix()}", path
    for name in ("__init__.py", "contract.py"):
        yield f"trainer/{name}", own / name
    places = (package.parent / "tests" / "numerics", package / "shipped_tests" / "numerics")
    tests = next((place for place in places if place.is_dir()), None)
    if tests is None:
        raise BadInput("the installed Harness lacks the objective test", where=str(package))
    for name in OBJECTIVE:
        yield f"tests/numerics/{name}", tests / name
