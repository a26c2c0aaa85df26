"""2,000 damaged plan, receipt and evidence files: one sentence each, never a traceback."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.display.sanitize import clean
from harness.errors import BadInput, HarnessError
from harness.plan import load_plan
from harness.receipts import RECEIPTS
from harness.report.load import load_evidence
from harness.strict import load_file

FILES = 2_000
WHOLE = 60
"""Of these, so many are read as a part of a whole evidence folder."""
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**53, 10**400, 1.5, -0.0, "", "\u202e", "x" * 5000, "../../etc", [], {},
    [[]], {"": ""}, "NaN", "1e999", [None] * 50,
)  # fmt: skip


def damaged(data: bytes, drawn: random.Random) -> bytes:
    """Flipped, cut, or with one inner value replaced."""
    way = drawn.randrange(5)
    if way == 0:
        at = drawn.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << drawn.randrange(8)]) + data[at + 1 :]
    if way == 1:
        return data[: drawn.randrange(len(data))]
    if way == 2:
        at = drawn.randrange(len(data))
        extra = drawn.choice(
            (b"NaN", b"{", b'"', b"\x00", b"\xff", b'"a":1,', b"1e400", b"[" * 300)
        )
        return data[:at] + extra + data[at:]
    value = json.loads(data)
    places = list(_places(value))
    if places:
        parent, key = drawn.choice(places)
        if way == 3 and isinstance(parent, dict):
            del parent[key]
        else:
            parent[key] = drawn.choice(ODD)
    return json.dumps(value).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in list(inner):
        yield value, key
        if isinstance(one, dict | list):
            yield from _places(one)


def test_damaged_plans_and_receipts_are_refused_in_a_sentence(
    written: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, _ = written
    files = [folder / "plan.json", *sorted((folder / "receipts").glob("*.json"))]
    drawn, path, refused = random.Random(3), tmp_path / "plan.json", 0
    for number in range(FILES):
        source = files[number % len(files)] if number % 3 else files[0]
        path.write_bytes(damaged(source.read_bytes(), drawn))
        try:
            if source.name == "plan.json":
                load_plan(path)
            else:
                kind = next(k for name, k in RECEIPTS.items() if name == source.stem)
                load_file(kind, path)
        except HarnessError as error:
            refused += 1
            assert "\n" not in str(error)
            assert clean(str(error)).isprintable()
    assert refused > FILES // 2


def test_damaged_evidence_is_refused_or_read(copy: Path) -> None:
    drawn = random.Random(4)
    files = [path for path in sorted(copy.rglob("*.json*")) if path.stat().st_size > 2]
    for number in range(WHOLE):
        path = files[number % len(files)]
        whole = path.read_bytes()
        line = whole.split(b"\n")[0]
        path.write_bytes(damaged(line, drawn) + whole[len(line) :])
        try:
            load_evidence(copy)
        except BadInput as error:
            assert str(error)
        path.write_bytes(whole)


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"\xef\xbb\xbf{}", b"{}" * 2])
def test_what_is_no_object_is_no_plan(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(data)
    with pytest.raises(BadInput):
        load_plan(path)
