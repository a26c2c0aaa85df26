"""Strict JSON in: files become frozen models, mistakes become one sentence with a JSON pointer."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import BadInput
from trainer import contract


class Model(BaseModel):
    """Base of every typed value that crosses a room: frozen, strict, no unknown fields."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    def to_json(self) -> Any:
        """The plain JSON value, with fields that are absent (None by default) left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


M = TypeVar("M", bound=BaseModel)


def read_plain(path: Path, *, limit: int = contract.MAX_JSON_BYTES) -> bytes:
    """A plain file's bytes. Raises BadInput for a pipe, a device or more than `limit` bytes, which
    could be read for ever, and OSError."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as handle:
        kind = os.fstat(handle.fileno()).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise BadInput("is not a plain file", where=str(path))
        data = handle.read(limit + 1)
    if len(data) > limit:
        raise BadInput(f"is larger than {limit} bytes", where=str(path))
    return data


def load_file(model: type[M], path: Path, *, next_command: str = "") -> M:
    """Read a JSON file into a model. Raises BadInput with file and JSON pointer."""
    try:
        data = read_plain(path)
    except OSError as error:
        raise BadInput(
            f"cannot be read ({error.strerror})", where=str(path), next_command=next_command
        ) from None
    return load(model, data, where=str(path), next_command=next_command)


def load(model: type[M], data: bytes, *, where: str, next_command: str = "") -> M:
    """Strictly parse bytes into a model. Raises BadInput with a JSON pointer after `where`."""
    try:
        value = contract.parse(data, where="the file")
    except contract.ContractError as error:
        raise BadInput(str(error), where=where, next_command=next_command) from None
    return build(model, value, where=where, next_command=next_command)


def build(model: type[M], value: Any, *, where: str, next_command: str = "") -> M:
    """Validate a parsed JSON value. Raises BadInput for the first fault, with its pointer."""
    try:
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=True)
        first = faults[0]
        place = pointer(first["loc"], value)
        more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
        raise BadInput(
            f"{_sentence(dict(first))}{more}",
            where=f"{where}#{place}",
            next_command=next_command,
        ) from None


def pointer(loc: tuple[int | str, ...], value: Any) -> str:
    """A JSON pointer (RFC 6901) from pydantic's location, without its union tags."""
    parts: list[str] = []
    here: Any = value
    for i, step in enumerate(loc):
        last = i + 1 == len(loc)
        # A union's tag may have the name of a member, so only an inner value is stepped into.
        if isinstance(here, dict):
            inner = here.get(str(step))
            if not last and not isinstance(inner, dict | list):
                continue
            here = inner
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            continue
        parts.append(str(step).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{part}" for part in parts)


def _sentence(fault: dict[str, Any]) -> str:
    message = str(fault["msg"]).removeprefix("Value error, ")
    kind = fault["type"]
    if kind == "extra_forbidden":
        return f"the field '{fault['loc'][-1]}' is not known"
    if kind == "missing":
        return f"the field '{fault['loc'][-1]}' is missing"
    if kind in ("union_tag_invalid", "literal_error", "enum"):
        expected = fault["ctx"].get("expected_tags") or fault["ctx"].get("expected")
        return f"{shown(fault['input'])} is not one of {expected}"
    if kind == "value_error":
        return message
    return f"{message[0].lower()}{message[1:]}, not {shown(fault['input'])}"


def shown(value: Any) -> str:
    """A short, safe rendering of a bad value for an error message."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
