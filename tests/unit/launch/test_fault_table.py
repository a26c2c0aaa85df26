"""docs/faults.md names tests; a test that was renamed or removed proves nothing any more."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_test_that_the_table_names_exists() -> None:
    text = (ROOT / "docs" / "faults.md").read_text()
    named = re.findall(r"`(tests/[a-z_/]+\.py)::(?:(\w+)::)?(test_\w+)`", text)
    assert len(named) > 40
    for path, inside, name in named:
        source = (ROOT / path).read_text()
        if inside:
            source = source.partition(f"\nclass {inside}")[2]
        assert re.search(rf"^ *def {name}\(", source, re.MULTILINE), f"{path}::{inside} {name}"


def test_every_line_has_a_proof_or_says_that_it_has_none() -> None:
    lines = (ROOT / "docs" / "faults.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| fault")]
    assert len(rows) > 30
    assert [row for row in rows if "::test_" not in row and "not proved" not in row] == []
