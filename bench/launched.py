"""Jobs of the trainer as a host starts them: `trainer/launch` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.contract import read_json, read_lines, write_json

TOP = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Ended:
    """What a job of one worker left."""

    out: Path
    wall_s: float
    """From the start of the process to its end, the interpreter's own exit included."""
    receipt: dict[str, Any]

    def losses(self) -> list[dict[str, Any]]:
        """Lines of losses-0.jsonl."""
        return list(read_lines(self.out / "losses-0.jsonl"))


def command(work: Path, recipe: dict[str, Any], inputs: Path, model: Path) -> list[str]:
    """The words that start one worker of a recipe, which is written into `work`."""
    write_json(work / "recipe.json", recipe)
    words = {
        "recipe": work / "recipe.json", "inputs": inputs, "model": model, "out": work / "out",
        "node-rank": 0, "nodes": 1, "address": "127.0.0.1", "port": 0, "interface": "lo",
    }  # fmt: skip
    argv = [str(word) for name, value in words.items() for word in (f"--{name}", value)]
    return [str(TOP / "trainer" / "launch"), *argv]


def environment() -> dict[str, str]:
    """This process's own, in which `python3` is its interpreter."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path}


def run(
    recipe: dict[str, Any], inputs: Path, model: Path, work: Path, compiled_in: Path | None = None
) -> Ended:
    """Run a recipe in `work` and read its receipt. Raises SystemExit when the job fails.

    `compiled_in` is where compiled code is kept and looked for; on a host that is its scratch
    folder, which all jobs of a run share.
    """
    work.mkdir(parents=True)
    argv = command(work, recipe, inputs, model)
    kept = {} if compiled_in is None else {"TORCHINDUCTOR_CACHE_DIR": str(compiled_in)}
    begun = time.monotonic()
    done = subprocess.run(argv, env={**environment(), **kept}, check=False)
    wall_s = time.monotonic() - begun
    if done.returncode:
        raise SystemExit(f"the task {recipe['task']} ended with {done.returncode}")
    return Ended(work / "out", wall_s, read_json(work / "out" / "receipt-0.json"))
