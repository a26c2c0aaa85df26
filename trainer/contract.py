"""The contract between Harness and a trainer: canonical JSON, hashes and file formats.

Standard library only, so that every side (operator, host helper, any trainer) can import it.
`docs/contract.md` is the same contract in prose.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

CONTRACT = "harness/contract/1"

SEED_FILES = ("model.safetensors", "config.json", "tokenizer.json")
"""What the task `seed` writes: FP32 weights, the model's shape, the tokenizer."""

MAX_JSON_BYTES = 256 * 1024 * 1024
MAX_JSON_DEPTH = 64
_MAX_SAFE_INTEGER = 2**53 - 1
_CHUNK_BYTES = 8 * 1024 * 1024


class ContractError(ValueError):
    """A file or value that does not keep to the contract. The message is one sentence."""


# --- strict JSON ------------------------------------------------------------------------------


def parse(data: bytes | str, *, where: str = "JSON") -> Any:
    """Parse strict JSON: no duplicate keys, NaN, infinities, lone surrogates or deep nesting.

    Raises ContractError naming `where` it was found.
    """
    if len(data) > MAX_JSON_BYTES:
        raise ContractError(f"{where} is larger than {MAX_JSON_BYTES} bytes")
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
        )
    except UnicodeDecodeError as error:
        raise ContractError(f"{where} is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ContractError(
            f"{where} is not JSON: {error.msg} at line {error.lineno} column {error.colno}"
        ) from None
    except RecursionError:
        raise ContractError(f"{where} is nested too deeply") from None
    except ValueError as error:
        raise ContractError(f"{where}: {error}") from None
    _check_value(value, where, 0)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {json.dumps(key)} appears twice in one object")
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is out of range")
    return value


def _check_value(value: Any, where: str, depth: int) -> None:
    if depth > MAX_JSON_DEPTH:
        raise ContractError(f"{where} is nested deeper than {MAX_JSON_DEPTH} levels")
    if isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_text(key, where)
            _check_value(inner, where, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_value(inner, where, depth + 1)


def _check_text(text: str, where: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ContractError(f"{where} holds a lone surrogate") from None


# --- canonical JSON (RFC 8785) ------------------------------------------------------------------


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value. Raises ContractError on what that RFC cannot hold.

    Tests compare this with the `rfc8785` package; it is written here because hosts and trainers
    have only the standard library.
    """
    out: list[str] = []
    _write(value, out)
    try:
        return "".join(out).encode("utf-8")
    except UnicodeEncodeError:
        raise ContractError("a string holds a lone surrogate") from None


def _write(value: Any, out: list[str]) -> None:
    if value is None:
        out.append("null")
    elif value is True:
        out.append("true")
    elif value is False:
        out.append("false")
    elif isinstance(value, str):
        out.append(_quote(value))
    elif isinstance(value, int):
        if abs(value) > _MAX_SAFE_INTEGER:
            raise ContractError(f"the integer {value} does not fit 53 bits; write it as a string")
        out.append(str(value))
    elif isinstance(value, float):
        out.append(_number(value))
    elif isinstance(value, (list, tuple)):
        out.append("[")
        for i, inner in enumerate(value):
            if i:
                out.append(",")
            _write(inner, out)
        out.append("]")
    elif isinstance(value, Mapping):
        _write_object(value, out)
    else:
        raise ContractError(f"a {type(value).__name__} is not a JSON value")


def _write_object(value: Mapping[Any, Any], out: list[str]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise ContractError("an object key is not a string")
    out.append("{")
    for i, key in enumerate(sorted(value, key=_utf16)):
        if i:
            out.append(",")
        out.append(_quote(key))
        out.append(":")
        _write(value[key], out)
    out.append("}")


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(value: float) -> str:
    """ECMAScript's Number::toString, which RFC 8785 prescribes."""
    if not math.isfinite(value):
        raise ContractError("a number is not finite")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + ("" if fraction == "0" else fraction)).lstrip("0")
    leading = len(whole + fraction) - len((whole + fraction).lstrip("0"))
    point = len(whole) - leading + int(exponent or 0)
    digits = digits.rstrip("0") if len(digits) > 1 else digits
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    shown = f"{point - 1:+d}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{shown}"


# --- hashes -------------------------------------------------------------------------------------


def sha256(data: bytes) -> str:
    """Hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def hash_of(value: Any) -> str:
    """Hex SHA-256 of a JSON value's canonical bytes."""
    return sha256(canonical(value))


def hash_file(path: str | os.PathLike[str]) -> tuple[str, int]:
    """(hex SHA-256, size in bytes) of a file, read in bounded memory."""
    digest = hashlib.sha256()
    size = 0
    with open(path, "rb") as handle:
        for chunk in _chunks(handle):
            digest.update(chunk)
            size += len(chunk)
    return digest.hexdigest(), size


def _chunks(handle: BinaryIO) -> Iterator[bytes]:
    while chunk := handle.read(_CHUNK_BYTES):
        yield chunk


def tree_names(root: str | os.PathLike[str]) -> list[str]:
    """Paths with '/' of every regular file under `root`, sorted by their bytes; no file is read.

    Byte code, caches and hidden files are left out; a link is an error.
    """
    base = Path(root)
    names = []
    for path in base.rglob("*"):
        relative = path.relative_to(base)
        if any(part == "__pycache__" or part.startswith(".") for part in relative.parts):
            continue
        if path.is_symlink():
            raise ContractError(f"{path} is a link; a pushed tree holds plain files only")
        if path.is_file() and path.suffix != ".pyc":
            names.append(relative.as_posix())
    return sorted(names, key=str.encode)


def tree_listing(root: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Every file of `tree_names` as {path, sha256, bytes, mode}, in that order.

    `mode` is '755' for an executable file, else '644'.
    """
    rows: list[dict[str, Any]] = []
    for name in tree_names(root):
        path = Path(root) / name
        digest, size = hash_file(path)
        mode = "755" if os.access(path, os.X_OK) and path.stat().st_mode & 0o100 else "644"
        rows.append({"path": name, "sha256": digest, "bytes": size, "mode": mode})
    return rows


def tree_hash(root: str | os.PathLike[str]) -> str:
    """Hex SHA-256 over the canonical listing of a tree (see `tree_listing`)."""
    return hash_of(tree_listing(root))


# --- files --------------------------------------------------------------------------------------


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that after a crash it is whole or absent: temporary, fsync, rename, fsync."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with open(temporary, "wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(temporary, target)
    sync_folder(target.parent)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """fsync a folder, so that a rename or a new file in it survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write canonical JSON and a newline, atomically."""
    write_atomic(path, canonical(value) + b"\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read strict JSON from a file. Raises ContractError, or OSError when it cannot be read."""
    return parse(Path(path).read_bytes(), where=str(path))


def write_lines(path: str | os.PathLike[str], rows: Iterable[Any]) -> None:
    """Write one canonical JSON value a line, atomically."""
    write_atomic(path, b"".join(canonical(row) + b"\n" for row in rows))


def read_lines(path: str | os.PathLike[str]) -> list[Any]:
    """Read a file of one strict JSON value a line."""
    return [
        parse(line, where=f"{path} line {number}")
        for number, line in enumerate(Path(path).read_bytes().splitlines(), start=1)
        if line
    ]


# --- weights ------------------------------------------------------------------------------------


def parameter_listing(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Every tensor of a safetensors file as {name, dtype, shape, sha256}, sorted by name.

    The hash covers the raw little-endian bytes, so the listing is independent of the file's layout
    and metadata.
    """
    rows = []
    with open(path, "rb") as handle:
        (length,) = struct.unpack("<Q", handle.read(8))
        if length > 100 * 1024 * 1024:
            raise ContractError(f"{path} has a header of {length} bytes, over the format's limit")
        header = parse(handle.read(length), where=f"{path} header")
        base = 8 + length
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            rows.append(
                {
                    "name": name,
                    "dtype": entry["dtype"],
                    "shape": entry["shape"],
                    "sha256": _hash_range(handle, base + begin, end - begin),
                }
            )
    rows.sort(key=lambda row: str(row["name"]).encode())
    return rows


def _hash_range(handle: BinaryIO, start: int, length: int) -> str:
    digest = hashlib.sha256()
    handle.seek(start)
    while length > 0:
        chunk = handle.read(min(length, _CHUNK_BYTES))
        if not chunk:
            raise ContractError("a safetensors file ends before its last tensor")
        digest.update(chunk)
        length -= len(chunk)
    return digest.hexdigest()


def parameter_root(path: str | os.PathLike[str]) -> str:
    """The parameter root: SHA-256 over the canonical `parameter_listing` of a safetensors file."""
    return hash_of(parameter_listing(path))
