"""What is pushed: the plan's trainer and the on-host helper, as one tree with one hash.

Layout: `trainer/` (the plan's trainer) and `helper/` (harness.onhost with trainer.contract).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import harness
import trainer
from harness.errors import BadInput
from harness.plan import LoadedPlan
from harness.plan.model import TreeTrainer
from trainer import contract


@dataclass(frozen=True)
class Source:
    """A tree ready to push."""

    folder: Path
    sha256: str
    trainer_sha256: str
    requirements: Path | None

    @property
    def launch(self) -> Path:
        """The trainer's executable on the operator's machine."""
        return self.folder / "trainer" / "launch"


def trainer_folder(loaded: LoadedPlan) -> Path:
    """Where the plan's trainer is. Raises BadInput when there is no `launch`."""
    chosen = loaded.plan.trainer
    if isinstance(chosen, TreeTrainer):
        folder = (loaded.folder / chosen.path).resolve()
    else:
        folder = Path(trainer.__file__).parent
    if not (folder / "launch").is_file():
        raise BadInput("the trainer has no executable `launch`", where=f"{loaded.path}#/trainer")
    return folder


def gather(loaded: LoadedPlan, into: Path) -> Source:
    """Copy the tree together and hash it. An older copy is replaced."""
    here = Path(harness.__file__).parent
    if into.exists():
        shutil.rmtree(into)
    _copy(trainer_folder(loaded), into / "trainer")
    _copy(here / "onhost", into / "helper" / "harness" / "onhost")
    bundled = Path(trainer.__file__).parent
    (into / "helper" / "trainer").mkdir()
    shutil.copyfile(bundled / "contract.py", into / "helper" / "trainer" / "contract.py")
    for package in ("harness", "trainer"):
        (into / "helper" / package / "__init__.py").write_text("")
    launch = into / "trainer" / "launch"
    launch.chmod(0o755)
    requirements = into / "trainer" / "requirements.txt"
    return Source(
        folder=into,
        sha256=contract.tree_hash(into),
        trainer_sha256=contract.tree_hash(into / "trainer"),
        requirements=requirements if requirements.exists() else None,
    )


def _copy(source: Path, target: Path) -> None:
    for row in contract.tree_listing(source):
        place = target / str(row["path"])
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / str(row["path"]), place)
        place.chmod(int(str(row["mode"]), 8))
