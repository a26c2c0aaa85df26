"""`harness cost` prints what fits 80 columns and says when the bill is above the bound."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from harness.cli import cost as cost
from harness.cli.app import app
from harness.results import GoneThing, Resources
from harness.strict import load_file
from tests.unit.cost.lives import host, observed, resources, volume
from tests.unit.cost.test_reconcile import OLD, old_csv, write_csv
from trainer import contract

FOUND = resources(observed((host(0), host(1, sent_bytes=None)), (volume(iops=5000),)), final=True)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["cost", *map(str, arguments)], env={"COLUMNS": "80"})


STOOD = (
    GoneThing(kind="schedule", id="pair-20261130-abcd/host-0", gone_utc="2026-11-30T10:00:01.5Z"),
    GoneThing(kind="security group", id="sg-1"),
)


def written(folder: Path) -> Path:
    path = folder / "resources.json"
    contract.write_json(path, FOUND.model_copy(update={"removed": STOOD}).to_json())
    return path


def test_the_table_fits_80_columns_and_has_every_line(tmp_path: Path) -> None:
    result = run(written(tmp_path))
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80
    words = " ".join(result.output.split())
    for text in ("fleet f-1", "20261130-a, 20261130-b", "BoxUsage:g6e.xlarge", "2026-11",
                 "not an invoice", "host-1 of 1.0", "3600", "outer: 2 schedules",
                 "pair-20261130-abcd/host-0 11-30 10:00:01",
                 "security group sg-1 still there"):  # fmt: skip
        assert text.replace("3600", "3,600.00 s") in words, text
    assert "allowance" in words and "ceiling 150" in words


def test_json_is_the_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    result = run(path, "--json")
    assert json.loads(result.stdout) == json.loads(path.read_text())
    assert load_file(Resources, path).removed == STOOD


def test_beside_a_bill(tmp_path: Path) -> None:
    path = written(tmp_path)
    within = run(path, "--reconcile", old_csv(tmp_path))
    assert within.exit_code == 0, within.output
    assert max(map(len, within.output.splitlines())) <= 80
    row = ["BoxUsage:g6e.xlarge", "99", "Usage", "f-1", "USD"]
    above = run(path, "--reconcile", write_csv(tmp_path / "b.csv", OLD, [row]))
    assert above.exit_code == 5
    assert "OVER" in above.output and "billed above their bound" in above.output


def test_what_is_no_resources_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    result = run(tmp_path / "x.json")
    assert result.exit_code == 2 and "Traceback" not in result.output
