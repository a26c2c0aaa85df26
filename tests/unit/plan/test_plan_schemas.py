"""The published schemas are what the models say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.schemas import FILES, FOLDER, schema_of, stale_schemas, write_schemas

REWRITE = 'python -c "from harness.schemas import write_schemas; write_schemas()"'


def test_every_schema_file_is_current() -> None:
    stale = stale_schemas()
    assert not stale, f"out of date in {FOLDER}: {', '.join(stale)}; rewrite them with: {REWRITE}"


def test_a_changed_or_missing_file_is_named(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    assert stale_schemas(tmp_path) == ()
    (tmp_path / "plan.json").write_text("{}")
    (tmp_path / "results.json").unlink()
    assert stale_schemas(tmp_path) == ("plan", "results")


@pytest.mark.parametrize("name", FILES)
def test_unknown_fields_are_refused_and_the_schema_field_is_fixed(name: str) -> None:
    schema = schema_of(name)
    assert schema["additionalProperties"] is False
    if name == "journal-entry":  # a line of journal.jsonl, whose lines do not repeat the schema
        assert schema["$id"] == "harness/journal-entry/1"
    else:
        assert schema["properties"]["schema"]["const"] == schema["$id"]
        assert schema["$id"].removeprefix("harness/").split("/")[0] == name.split("-")[0]


def test_every_field_that_the_plans_use_is_in_the_schema() -> None:
    schema = schema_of("plan")
    for path in (Path(__file__).parents[3] / "plans").glob("*/plan.json"):
        walk(schema, schema, json.loads(path.read_bytes()))


def walk(root: Any, schema: Any, value: Any) -> None:
    """Every member of `value` is a property of the schema at its place."""
    options = list(alternatives(root, schema))
    if isinstance(value, dict):
        named = [o for o in options if fits(o, value)]
        assert named, f"no alternative of the schema has the members {sorted(value)}"
        for key, inner in value.items():
            walk(root, named[0]["properties"][key], inner)
    if isinstance(value, list):
        (items,) = (o for o in options if o.get("type") == "array")
        for each in value:
            walk(root, items["items"], each)


def alternatives(root: Any, schema: Any) -> Any:
    """The schema with references and unions resolved."""
    if "$ref" in schema:
        yield from alternatives(root, root["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    elif "anyOf" in schema or "oneOf" in schema:
        for each in schema.get("anyOf", schema.get("oneOf")):
            yield from alternatives(root, each)
    else:
        yield schema


def fits(schema: Any, value: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    kind = properties.get("kind", {}).get("const", value.get("kind"))
    required = set(schema.get("required", ()))
    return set(value) <= set(properties) and required <= set(value) and kind == value.get("kind")
