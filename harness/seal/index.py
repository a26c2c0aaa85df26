"""index.json: the first member, which binds every other one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.errors import BadInput
from harness.plan.kinds import CountOrZero, Sha256
from harness.seal.limits import Caps
from harness.seal.names import Names, sort_key
from harness.strict import Model, load, shown
from trainer import contract

INDEX = "index.json"


class Member(Model):
    """One file of the archive."""

    path: str
    sha256: Sha256
    bytes: CountOrZero
    mode: Literal["644", "755"]
    """755: its owner may execute it."""


class Index(Model):
    """Every member but the index itself, sorted by the UTF-8 bytes of its path."""

    schema_: Literal["harness/archive/1"] = Field(alias="schema")
    members: tuple[Member, ...]

    def data(self) -> bytes:
        """index.json as written: canonical JSON and a newline."""
        return contract.canonical(self.to_json()) + b"\n"


def read_index(data: bytes, *, caps: Caps) -> Index:
    """Parse index.json strictly: canonical, sorted, names that do not collide, within the caps.

    Raises BadInput.
    """
    index = load(Index, data, where=INDEX)
    if index.data() != data:
        raise BadInput("is not canonical JSON", where=INDEX)
    check_index(index, caps=caps)
    return index


def check_index(index: Index, *, caps: Caps) -> None:
    """Refuse names, an order or sizes that an archive may not have. Raises BadInput."""
    if len(index.members) > caps.members:
        raise BadInput(f"there are {len(index.members)} members, over the cap of {caps.members}")
    names = Names()
    names.add(INDEX)
    before = b""
    for member in index.members:
        names.add(member.path)
        if sort_key(member.path) < before:
            raise BadInput(f"the member {shown(member.path)} is out of order", where=INDEX)
        before = sort_key(member.path)
        if member.bytes > caps.member_bytes:
            raise BadInput(
                f"the member {shown(member.path)} has {member.bytes} bytes, over the cap of "
                f"{caps.member_bytes}"
            )
    total = sum(member.bytes for member in index.members)
    if total > caps.total_bytes:
        raise BadInput(f"the members have {total} bytes, over the cap of {caps.total_bytes}")
