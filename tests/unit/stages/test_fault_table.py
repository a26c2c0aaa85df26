"""Every test that docs/faults-hosts.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).parents[3]
NAMED = re.compile(r"`(tests/[a-z0-9_/]+\.py)(?:::([a-z0-9_]+))?`")


def test_every_named_test_exists() -> None:
    named = NAMED.findall((TOP / "docs" / "faults-hosts.md").read_text())
    assert len(named) > 30
    for file, test in named:
        text = (TOP / file).read_text()
        assert not test or f"def {test}(" in text, f"{file}::{test}"


def test_every_line_names_a_test() -> None:
    rows = [
        line
        for line in (TOP / "docs" / "faults-hosts.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| what happens")
    ]
    assert len(rows) > 20
    assert [row for row in rows if not NAMED.search(row)] == []
