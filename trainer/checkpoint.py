"""Folders of weights that are whole or absent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from trainer import tensors
from trainer.contract import read_json, sync_folder, write_json
from trainer.roots import to_array
from trainer.state import State

_COPIED = ("config.json", "tokenizer.json")


def write_candidate(
    out: Path, model: Path, parameters: Mapping[str, Tensor], progress: Callable[[], None]
) -> Path:
    """Write `out/candidate`: the parameters, and the configuration and tokenizer of `model`."""

    def fill(folder: Path) -> None:
        write_tensors(folder / "model.safetensors", parameters, progress)
        for name in _COPIED:
            if (model / name).exists():
                copy(model / name, folder / name)

    return whole_folder(out / "candidate", fill)


def write_state(out: Path, state: State, rank: int, progress: Callable[[], None]) -> Path:
    """Write `out/state-R`: what this rank needs beside the candidate to go on exactly.

    `position.json` says how many updates are done; `shared.safetensors` holds the moments
    (rank 0 only, they are alike), `rank-R.safetensors` this rank's own state.
    """

    def fill(folder: Path) -> None:
        write_json(folder / "position.json", {"update": state.update, "rank": rank})
        if rank == 0:
            write_tensors(folder / "shared.safetensors", state.shared_tensors(), progress)
        write_tensors(folder / f"rank-{rank}.safetensors", state.rank_tensors(), progress)

    return whole_folder(out / f"state-{rank}", fill)


def whole_folder(target: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a folder under a temporary name and rename it: killed before that, it is absent.

    Left-overs of a killed attempt are removed; a folder already there is replaced.
    """
    temporary = target.with_name(f".{target.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    fill(temporary)
    sync_folder(temporary)
    if target.exists():
        shutil.rmtree(target)
    temporary.rename(target)
    sync_folder(target.parent)
    return target


def write_tensors(
    path: Path, named: Mapping[str, Tensor], progress: Callable[[], None] = lambda: None
) -> None:
    """Write tensors to a safetensors file, one at a time on the host."""
    shapes = {
        name: (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
        for name, tensor in named.items()
    }
    tensors.write(path, shapes, lambda name: to_array(named[name]), progress)


def copy(source: Path, target: Path) -> None:
    """Copy one file and fsync the copy."""
    shutil.copyfile(source, target)
    with open(target, "rb") as handle:
        os.fsync(handle.fileno())


def read_state(out: Path, out_of_rank_0: Path, state: State, rank: int) -> None:
    """Go on from what `write_state` wrote; `state` holds the candidate's parameters already.

    The moments come from rank 0's folder, the rest from this rank's.
    """
    own = out / f"state-{rank}"
    position = read_json(own / "position.json")
    shared = load_file(out_of_rank_0 / "state-0" / "shared.safetensors")
    state.restore(position["update"], shared, load_file(own / f"rank-{rank}.safetensors"))
