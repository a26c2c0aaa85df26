"""Inputs against the field names and types of the installed pulumi-aws package."""

from __future__ import annotations

import enum
import functools
import importlib
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pulumi import _types
from pulumi.runtime.rpc import UNKNOWN

Fault = tuple[str, str]
"""Property path and reason."""


@functools.cache
def arguments(token: str) -> tuple[type, frozenset[str]]:
    """The args class of a resource type and its required fields' names on the wire."""
    module_name, _, name = token.removeprefix("aws:").partition("/")
    room = importlib.import_module(f"pulumi_aws.{module_name}")
    resource = getattr(room, name.rpartition(":")[2])
    own = sys.modules[resource.__module__]
    # 'InitArgs' where an inner type has taken the other name.
    inits: type | None = getattr(own, f"{resource.__name__}InitArgs", None)
    args: type = inits or getattr(own, f"{resource.__name__}Args")
    return args, required(args)


@functools.cache
def fields(args: type) -> dict[str, Any]:
    """Names on the wire and types of an args class."""
    return dict(_types.input_type_types(args))


@functools.cache
def required(args: type) -> frozenset[str]:
    """Names on the wire of what has no default."""
    wire = _types.input_type_py_to_pulumi_names(args)
    init: Any = vars(args)["__init__"]
    optional = set(init.__kwdefaults__ or ())
    return frozenset(wire[name] for name in wire if name not in optional)


def check(token: str, inputs: Mapping[str, Any]) -> list[Fault]:
    """Every unknown, misspelled, missing or wrongly typed field."""
    args, _ = arguments(token)
    return list(_object(args, inputs, ""))


def _object(args: type, value: Mapping[str, Any], place: str) -> Iterator[Fault]:
    known = fields(args)
    for name, inner in value.items():
        at = f"{place}.{name}" if place else name
        if name not in known:
            yield at, f"{args.__name__} has no field '{name}'"
        elif inner is not None:
            yield from _value(known[name], inner, at)
    for name in sorted(required(args)):
        if value.get(name) is None:
            yield f"{place}.{name}" if place else name, f"{args.__name__} needs '{name}'"


def _value(wanted: Any, value: Any, at: str) -> Iterator[Fault]:
    if value == UNKNOWN:
        return
    kinds = list(_alternatives(wanted))
    for kind in kinds:
        if _types.is_input_type(kind) and isinstance(value, Mapping):
            yield from _object(kind, value, at)
            return
        origin = typing.get_origin(kind)
        if origin in (Sequence, list) and isinstance(value, list):
            (inner,) = typing.get_args(kind)
            for index, each in enumerate(value):
                yield from _value(inner, each, f"{at}[{index}]")
            return
        if origin in (Mapping, dict) and isinstance(value, Mapping):
            inner = typing.get_args(kind)[1]
            for name, each in value.items():
                yield from _value(inner, each, f"{at}.{name}")
            return
        if isinstance(kind, type) and _plain(kind, value):
            return
    yield at, f"{value!r} is not of {' | '.join(str(kind) for kind in kinds)}"


def _alternatives(wanted: Any) -> Iterator[Any]:
    """The types that a possibly wrapped Input[...] may hold, plumbing left out."""
    for each in typing.get_args(wanted) if _is_union(wanted) else (wanted,):
        origin = typing.get_origin(each)
        if _is_union(each):
            yield from _alternatives(each)
        elif getattr(origin or each, "__name__", "") not in ("Awaitable", "Output", "NoneType"):
            yield each


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) is typing.Union or type(kind).__name__ == "UnionType"


def _plain(kind: type, value: Any) -> bool:
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is int:
        return isinstance(value, int | float) and float(value).is_integer()
    if kind is float:
        return isinstance(value, int | float)
    if issubclass(kind, enum.Enum):
        return value in {member.value for member in kind}
    return isinstance(value, kind)
