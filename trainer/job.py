"""One call of `launch`, with everything a task may read from outside."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from trainer.beginning import Beginning
from trainer.errors import RecipeError
from trainer.recipe import Common


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The command line."""

    recipe: Path
    inputs: Path | None
    model: Path | None
    out: Path
    node_rank: int
    nodes: int
    address: str
    """Rank 0's."""
    port: int
    """Rank 0's."""
    interface: str
    resume: tuple[Path, ...] = ()
    """--out of earlier attempts at the same."""


@dataclass(frozen=True)
class Job:
    """A checked call: what was asked, and when it began."""

    arguments: Arguments
    recipe: Common
    beginning: Beginning
    source: Path
    """The trainer's own folder."""

    @property
    def out(self) -> Path:
        """The one folder that is written to."""
        return self.arguments.out

    @property
    def rank(self) -> int:
        """This worker."""
        return self.arguments.node_rank

    @property
    def workers(self) -> int:
        """All of them."""
        return self.arguments.nodes

    def input(self, name: str) -> Path:
        """A file or folder inside --inputs. Raises RecipeError when it is not there."""
        return _inside(self.arguments.inputs, "--inputs", name)

    def beside_inputs(self, path: str) -> Path:
        """A folder given relative to --inputs, in it or not. Raises RecipeError when absent."""
        if self.arguments.inputs is None:
            raise RecipeError("this task needs --inputs")
        found = self.arguments.inputs / path
        if not found.is_dir():
            raise RecipeError(f"there is no folder {path} relative to {self.arguments.inputs}")
        return found

    @property
    def model(self) -> Path:
        """The folder of the model to start from. Raises RecipeError when it is not whole."""
        for name in ("model.safetensors", "config.json"):
            _inside(self.arguments.model, "--model", name)
        assert self.arguments.model is not None
        return self.arguments.model


def _inside(folder: Path | None, option: str, name: str) -> Path:
    if folder is None:
        raise RecipeError(f"this task needs {option}")
    path = folder / name
    if Path(name).is_absolute() or os.path.normpath(name).startswith(".."):
        raise RecipeError(f"{name} is not inside {option} {folder}")
    if not path.exists():
        raise RecipeError(f"{option} {folder} holds no {name}")
    return path
