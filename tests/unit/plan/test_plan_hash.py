"""A plan's hash is RFC 8785 over the file as written, with no defaults filled in."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plan import load_plan
from trainer import contract

PLANS = sorted((Path(__file__).parents[3] / "plans").glob("*/plan.json"))
QUICKSTART = next(path for path in PLANS if path.parent.name == "quickstart")


def hash_of_text(folder: Path, text: str) -> str:
    path = folder / "plan.json"
    path.write_text(text)
    return load_plan(path).hash


def shuffled(value: Any, reverse: bool) -> Any:
    """The same value with the members of every object in another order."""
    if isinstance(value, dict):
        keys = sorted(value, reverse=reverse)
        return {key: shuffled(value[key], reverse) for key in keys}
    return [shuffled(each, reverse) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.parent.name)
def test_it_is_what_the_rfc8785_package_gives(path: Path) -> None:
    expected = hashlib.sha256(rfc8785.dumps(json.loads(path.read_bytes()))).hexdigest()
    assert load_plan(path).hash == expected


@pytest.mark.parametrize("indent", [None, 0, 7])
@pytest.mark.parametrize("reverse", [False, True])
def test_white_space_and_order_do_not_matter(
    tmp_path: Path, indent: int | None, reverse: bool
) -> None:
    value = shuffled(json.loads(QUICKSTART.read_bytes()), reverse)
    assert hash_of_text(tmp_path, json.dumps(value, indent=indent)) == load_plan(QUICKSTART).hash


def test_spelling_of_numbers_and_text_does_not_matter(tmp_path: Path) -> None:
    text = QUICKSTART.read_text()
    other = text.replace('"lr": 0.0002', '"lr": 2.0e-4').replace(
        "quickstart-1", "quick\\u0073tart-1"
    )
    assert other != text
    assert hash_of_text(tmp_path, other) == load_plan(QUICKSTART).hash


@pytest.mark.parametrize(
    ("at", "field", "default"),
    [
        (("recipe",), "checkpointing", False),
        (("recipe", "schedule"), "floor", 0),
        (("evaluation",), "max_answer_bytes", 32768),
        (("arms", 0), "microbatch", None),
        (("decisions", 0), "exploratory", False),
        ((), "serving", None),
        (("hosts", "local"), "threads", None),
    ],
)
def test_an_absent_field_and_its_default_written_out_mean_the_same_and_differ_in_hash(
    tmp_path: Path, at: tuple[Any, ...], field: str, default: object
) -> None:
    absent = json.loads(QUICKSTART.read_bytes())
    here = absent
    for step in at:
        here = here[step]
    here.pop(field, None)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(absent))
    before = load_plan(path)
    here[field] = default
    path.write_text(json.dumps(absent))
    after = load_plan(path)
    assert after.plan == before.plan
    assert after.hash != before.hash


def test_one_changed_figure_changes_it(tmp_path: Path) -> None:
    text = QUICKSTART.read_text().replace('"rank": 8', '"rank": 9')
    assert hash_of_text(tmp_path, text) != load_plan(QUICKSTART).hash


TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
@settings(max_examples=300, deadline=None)
def test_canonical_bytes_are_those_of_the_package_for_any_value(value: Any) -> None:
    assert contract.canonical(value) == rfc8785.dumps(value)
