"""Saving while training goes on, and finding what to go on from.

A save stops training only for the copy to host memory; a thread then writes and hashes. The order
of a save, alike on every rank, is what a kill at any instruction relies on:

    1. wait until this rank's checkpoint before is whole on disk (it is, unless disks are slower
       than the interval),
    2. hear from all ranks that theirs is too: from here on it is common,
    3. remove older ones, copy the state, start writing the new one.

So the newest checkpoint that all ranks hold is never removed before its successor is common.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from trainer import checkpoint
from trainer.checkpoint import Identity, Progress
from trainer.ranks import Rank
from trainer.state import State

_PATIENCE_S = 1.0


@dataclass(frozen=True)
class Saved:
    """One checkpoint, as the receipt reports it. Seconds."""

    update: int
    stall_seconds: float
    """Training stood still: waiting for the one before, for the other ranks, and the copy."""
    copy_seconds: float
    """The copy to host memory alone."""
    write_seconds: float
    """In the background, until it was whole on disk."""
    bytes: int


@dataclass
class Saver:
    """Writes `folder/update-N` every `every` updates of a state."""

    folder: Path
    every: int | None
    identity: Callable[[], Identity]
    rank: Rank
    tick: Callable[[], None] = lambda: None
    saved: list[Saved] = field(default_factory=list)
    _copies: dict[str, Tensor] = field(default_factory=dict)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _writing: Future[Saved] | None = None

    def due(self, state: State, updates: int) -> bool:
        """Whether a checkpoint is due; after the last update there is none."""
        return self.every is not None and state.update % self.every == 0 < updates - state.update

    def save(self, state: State, progress: Progress) -> None:
        """Stand still for the copy, and write it behind training's back."""
        self.rank.synchronise()
        begun = time.monotonic()
        common = self.settle()
        _all_ranks(state, self.rank)
        for update, path in _folders(self.folder):
            if update != common:
                shutil.rmtree(path)
        copying = time.monotonic()
        named = self._copy(state.tensors())
        copied = time.monotonic()
        self._writing = self._pool.submit(
            self._write, named, progress, copied - begun, copied - copying
        )

    def settle(self) -> int | None:
        """Wait for the write in progress. Returns the update of the last checkpoint of this run.
        Raises what writing raised.
        """
        if self._writing is not None:
            while not wait([self._writing], _PATIENCE_S).done:
                self.tick()
            self.saved.append(self._writing.result())
            self._writing = None
        return self.saved[-1].update if self.saved else None

    def forget(self, state: State) -> None:
        """Once all ranks are done: no checkpoint is needed any more."""
        self.settle()
        self._pool.shutdown()
        _all_ranks(state, self.rank)
        shutil.rmtree(self.folder, ignore_errors=True)

    def report(self) -> list[dict[str, object]]:
        """For the receipt."""
        return [asdict(each) for each in self.saved]

    def _copy(self, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Copies on the host, in buffers that are kept (page-locked for a GPU)."""
        for name, tensor in named.items():
            kept = self._copies.get(name)
            if kept is None or kept.shape != tensor.shape or kept.dtype != tensor.dtype:
                self._copies[name] = torch.empty(
                    tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda
                )
            self._copies[name].copy_(tensor.detach(), non_blocking=True)
        self.rank.synchronise()
        return {name: self._copies[name] for name in named}

    def _write(
        self, named: Mapping[str, Tensor], progress: Progress, stall_s: float, copy_s: float
    ) -> Saved:
        begun = time.monotonic()
        target = checkpoint.place(self.folder, progress.update)
        size = checkpoint.write(target, named, self.identity(), progress)
        return Saved(progress.update, stall_s, copy_s, time.monotonic() - begun, size)


def newest_common(
    folders: Iterable[Path],
    state: State,
    rank: Rank,
    updates: int,
    identity: Callable[[], Identity],
) -> Path | None:
    """This rank's part of the newest checkpoint that every rank holds whole; None: there is none.

    Every rank must call it. Raises RecipeError when one there is of something else.
    """
    found: dict[int, Path] = {}
    for folder in folders:
        for update, path in checkpoint.whole_ones(folder).items():
            checkpoint.require_same(path, identity())
            found[update] = path
    held = torch.zeros(updates + 1, device=rank.device)
    for update in found:
        held[update] = 1
    common = (state.exchange.total(held) == rank.workers).nonzero().flatten().tolist()
    return found[common[-1]] if common else None


def _all_ranks(state: State, rank: Rank) -> None:
    """Wait for all ranks."""
    state.exchange.total(torch.ones(1, device=rank.device)).item()


def _folders(folder: Path) -> list[tuple[int, Path]]:
    named = folder.glob("update-*") if folder.is_dir() else ()
    return [(int(path.name.partition("-")[2]), path) for path in named]
