"""`launch` in ranks' processes that kill themselves where a test says."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never
from unittest import mock

from tests.numerics import work
from trainer import start, tensors
from trainer.heartbeat import Heartbeat


@dataclass(frozen=True)
class Kill:
    """Where a rank is killed.

    'update': after update `at`; 'writing': in the middle of the checkpoint's tensors after update
    `at`; 'removing': with the checkpoint before `at` half removed; 'candidate': while that is
    written.
    """

    rank: int
    where: str
    at: int


def launch(rank: int, workers: int, argvs: list[list[str]], port: int, kill: Kill | None) -> int:
    """What torchrun would start on one node; returns its exit status.

    What it says on standard error goes to RECIPE.RANK.err.
    """
    said = os.open(f"{argvs[rank][1]}.{rank}.err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 2)
    os.environ |= {
        "RANK": str(rank), "WORLD_SIZE": str(workers), "LOCAL_RANK": "0",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", str(rank))  # as if each rank were a host
    if kill is not None and kill.rank == rank:
        _prepare(kill)
    argv = [*argvs[rank], *(["--worker"] if workers > 1 else [])]
    return start.main(argv, work.ROOT / "trainer" / "launch")


def _die() -> Never:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("not killed")


def _prepare(kill: Kill) -> None:
    if kill.where == "update":
        _after_update(kill.at)
    elif kill.where == "removing":
        _in_removal(kill.at)
    else:
        _in_writing("candidate" if kill.where == "candidate" else f"update-{kill.at}")


def _after_update(at: int) -> None:
    beat = Heartbeat.beat

    def wrapped(self: Heartbeat, phase: str, done: int = 0, *rest: Any) -> None:
        beat(self, phase, done, *rest)
        if (phase, done) == ("train", at):
            _die()

    mock.patch.object(Heartbeat, "beat", wrapped).start()


def _in_writing(name: str) -> None:
    write = tensors.write

    def wrapped(path: Path, shapes: Any, get: Any, *rest: Any) -> None:
        last = sorted(shapes)[-1]
        mine = path.parent.name == f".{name}.partial"
        write(path, shapes, lambda each: _die() if mine and each == last else get(each), *rest)

    mock.patch.object(tensors, "write", wrapped).start()


def _in_removal(at: int) -> None:
    remove = shutil.rmtree

    def wrapped(path: Path, **options: Any) -> None:
        if path.parent.name.startswith("checkpoint-") and path.name != f"update-{at}":
            (path / "state.safetensors").unlink()
            _die()
        remove(path, **options)

    mock.patch.object(shutil, "rmtree", wrapped).start()
