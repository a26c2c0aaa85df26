"""The parameter root of tensors in memory; `contract.parameter_root` is that of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from trainer.contract import hash_of
from trainer.tensors import Array, pieces

_DTYPES = {torch.float32: "F32", torch.float64: "F64"}


def parameter_root(
    parameters: Mapping[str, torch.Tensor],
    threads: int = 4,
    progress: Callable[[], None] = lambda: None,
) -> str:
    """Hash of the sorted list of {name, dtype, shape, sha256 of the little-endian bytes}.

    Tensors are hashed side by side (hashing releases the interpreter); a rank holds at most
    `threads` of them on the host at once.
    """
    names = sorted(parameters, key=str.encode)

    def row(name: str) -> dict[str, Any]:
        tensor = parameters[name]
        digest = hashlib.sha256()
        for piece in pieces(to_array(tensor)):
            digest.update(piece)
        progress()
        return {
            "name": name,
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "sha256": digest.hexdigest(),
        }

    with ThreadPoolExecutor(threads) as pool:
        return hash_of(list(pool.map(row, names)))


def to_array(tensor: torch.Tensor) -> Array:
    """A tensor's values on the host, contiguous; shared with it where it lies there already."""
    array: Array = tensor.detach().cpu().contiguous().numpy()
    return array
