"""What came back: commits into the repository, evidence and records of runs beside them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from away import parcels
from away.parcels import Broken
from away.there import BACK, COMMITS


def unpack(folder: Path, repository: Path) -> list[str]:
    """Put everything in its place; sentences on what came. Raises Broken before anything is
    overwritten that differs: evidence is never replaced."""
    said = []
    with tempfile.TemporaryDirectory(prefix="harness-back-") as name:
        work = Path(name)
        whole = None
        for parcel in sorted(folder.glob(f"{BACK}-*")):
            whole = parcels.take(parcel, work / "parcels") or whole
        if whole is None:
            raise Broken(f"{folder} does not hold every piece of what was packed there")
        parcels.unpack(whole, work / "back")
        for evidence in sorted((work / "back" / "evidence").glob("*")):
            said.append(_evidence(evidence, repository / "evidence" / evidence.name))
        for run in sorted((work / "back" / "runs").glob("*/*")):
            target = repository / run.relative_to(work / "back")
            shutil.copytree(run, target, dirs_exist_ok=True)
            said.append(f"run       {target}")
    if (folder / COMMITS).exists():
        said += _commits(folder / COMMITS, repository)
    return said


def _evidence(source: Path, target: Path) -> str:
    if target.exists():
        if _listing(source) != _listing(target):
            raise Broken(f"{target} is there already and differs; evidence is never replaced")
        return f"evidence  {target} (the same as before)"
    shutil.copytree(source, target)
    return f"evidence  {target}"


def _listing(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): parcels.sha256(path) for path in files}


def _commits(bundle: Path, repository: Path) -> list[str]:
    """Fetch the runs' branches. Raises Broken when git refuses."""
    spec = "refs/heads/harness/*:refs/heads/harness/*"
    done = subprocess.run(
        ["git", "-C", str(repository), "fetch", str(bundle.resolve()), spec],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Broken(f"the commits cannot be fetched: {' '.join(done.stderr.split())[:300]}")
    new = [line.split()[-1] for line in done.stderr.splitlines() if "->" in line]
    return [f"commits   {branch}; to keep them in history: git merge {branch}" for branch in new]
