"""Safetensors files written tensor by tensor, so that a model needs no second copy in memory.

The format: eight bytes of header length (little-endian), a JSON header, then the raw tensors.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.contract import ContractError, parse

Array = npt.NDArray[Any]

_DTYPES: dict[str, str] = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "uint8": "U8",
}
_NAMES = {short: name for name, short in _DTYPES.items()}
_ALIGNMENT_BYTES = 8
_PIECE_BYTES = 64 * 1024 * 1024


def write(
    path: Path,
    shapes: Mapping[str, tuple[str, tuple[int, ...]]],
    get: Callable[[str], Array],
    progress: Callable[[], None] = lambda: None,
    see: Callable[[bytes | memoryview], object] = lambda piece: None,
) -> None:
    """Write the named tensors, in the order of their names, and fsync the file.

    `shapes` gives each one's numpy dtype name and shape, `get` its values when their turn comes.
    `progress` is called between pieces; `see` is given every byte in order. Raises ValueError
    when `get` gives another size.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name in sorted(shapes):
        dtype, shape = shapes[name]
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        header[name] = {
            "dtype": _DTYPES[dtype],
            "shape": list(shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT_BYTES)
    with open(path, "wb") as handle:
        beginning = struct.pack("<Q", len(text)) + text
        handle.write(beginning)
        see(beginning)
        for name in sorted(shapes):
            dtype, shape = shapes[name]
            array = np.ascontiguousarray(get(name))
            if array.dtype != np.dtype(dtype) or array.size != np.prod(shape, dtype=np.int64):
                raise ValueError(f"{name} is {array.dtype}{array.shape}, not {dtype}{shape}")
            for piece in pieces(array):
                handle.write(piece)
                see(piece)
                progress()
        handle.flush()
        os.fsync(handle.fileno())


def pieces(array: Array) -> list[memoryview]:
    """The raw bytes of a contiguous array, in pieces of bounded size, not copied."""
    whole = array.reshape(-1).view(np.uint8).data
    return [whole[i : i + _PIECE_BYTES] for i in range(0, len(whole), _PIECE_BYTES)]


def open_arrays(path: Path) -> dict[str, Array]:
    """Every tensor of a file as a read-only array mapped from disk: nothing is read before use.

    Raises ContractError on a data type that numpy does not have.
    """
    with open(path, "rb") as handle:
        (length,) = struct.unpack("<Q", handle.read(8))
        header = parse(handle.read(length), where=f"{path} header")
    arrays: dict[str, Array] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _NAMES:
            raise ContractError(f"{path}: {name} is {entry['dtype']}, which is not read here")
        begin = 8 + length + entry["data_offsets"][0]
        shape = tuple(entry["shape"])
        dtype = np.dtype(_NAMES[entry["dtype"]])
        empty = 0 in shape
        arrays[name] = (
            np.zeros(shape, dtype)
            if empty
            else np.memmap(path, dtype, mode="r", offset=begin, shape=shape)
        )
    return arrays
