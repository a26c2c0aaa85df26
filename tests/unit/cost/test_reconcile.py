"""Bound beside bill: exports of both versions and formats; billed above its bound is an error."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from harness.cost.billing import read_export
from harness.cost.reconcile import Reconciliation, reconcile, require_within
from harness.errors import BadInput, Leaked
from tests.unit.cost.lives import host, observed, resources, volume

FOUND = resources(observed((host(0), host(1)), (volume(),)))
Line = tuple[str, str, str, str]
"""Usage type, cost, line type, fleet."""
LINES: list[Line] = [
    ("BoxUsage:g6e.xlarge", "1.8500000000", "Usage", "f-1"),
    ("BoxUsage:g6e.xlarge", "1.8400000000", "Usage", "f-1"),
    ("BoxUsage:g6e.xlarge", "900", "Usage", "f-10"),
    ("BoxUsage:g6e.xlarge", "900", "Usage", ""),
    ("USE1-PublicIPv4:InUseAddress", "0.0099", "Usage", "f-1"),
    ("EBS:VolumeUsage.gp3", "0.0111", "Usage", "f-1"),
    ("USE1-Requests-Other", "0.25", "Usage", "f-1"),
    ("BoxUsage:g6e.xlarge", "-1", "Credit", "f-1"),
    ("", "0.5", "Tax", "f-1"),
]
OLD = ["lineItem/UsageType", "lineItem/UnblendedCost", "lineItem/LineItemType",
       "resourceTags/user:HarnessFleet", "lineItem/CurrencyCode"]  # fmt: skip
NEW = ["line_item_usage_type", "line_item_unblended_cost", "line_item_line_item_type",
       "resource_tags", "line_item_currency_code"]  # fmt: skip


def write_csv(path: Path, names: list[str], rows: list[list[Any]]) -> Path:
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", newline="") as handle:
        csv.writer(handle).writerows([names, *rows])
    return path


def rows(*, tags: bool) -> list[list[Any]]:
    return [
        [usage, usd, kind, json.dumps({"user_harness_fleet": fleet}) if tags else fleet, "USD"]
        for usage, usd, kind, fleet in LINES
    ]


def old_csv(folder: Path) -> Path:
    return write_csv(folder / "old.csv", OLD, rows(tags=False))


def new_csv(folder: Path) -> Path:
    return write_csv(folder / "new.csv.gz", NEW, rows(tags=True))


def new_parquet(folder: Path) -> Path:
    columns = {
        "line_item_usage_type": [line[0] for line in LINES],
        "line_item_unblended_cost": [float(line[1]) for line in LINES],
        "line_item_line_item_type": [line[2] for line in LINES],
    }
    tags = pyarrow.array(
        [[("user_harness_fleet", line[3])] for line in LINES],
        pyarrow.map_(pyarrow.string(), pyarrow.string()),
    )
    path = folder / "new.parquet"
    pyarrow.parquet.write_table(pyarrow.table({**columns, "resource_tags": tags}), path)
    return path


def by_sku(result: Reconciliation) -> dict[str, tuple[str, str]]:
    return {each.sku: (each.billed_usd, each.difference_usd) for each in result.lines}


@pytest.mark.parametrize("make", [old_csv, new_csv, new_parquet])
def test_every_form_of_export_gives_the_same(make: Any, tmp_path: Path) -> None:
    billed = read_export(make(tmp_path), "f-1")
    result = reconcile(FOUND, billed)
    found = by_sku(result)
    assert float(found["BoxUsage:g6e.xlarge"][0]) == pytest.approx(3.69)
    assert float(found["BoxUsage:g6e.xlarge"][1]) == pytest.approx(3.722 - 3.69)
    assert float(found["PublicIPv4:InUseAddress"][0]) == pytest.approx(0.0099)
    assert found["other usage"][0] == "0.25"
    assert float(result.left_out_usd) == -0.5
    assert not result.exceeded
    require_within(result, "export")


def test_amounts_of_a_csv_are_exact(tmp_path: Path) -> None:
    result = reconcile(FOUND, read_export(old_csv(tmp_path), "f-1"))
    assert by_sku(result)["BoxUsage:g6e.xlarge"] == ("3.6900000000", "0.0320000000")


def test_a_line_above_its_bound_is_named(tmp_path: Path) -> None:
    more = [*rows(tags=False), ["BoxUsage:g6e.xlarge", "0.04", "Usage", "f-1", "USD"]]
    result = reconcile(FOUND, read_export(write_csv(tmp_path / "a.csv", OLD, more), "f-1"))
    assert [each.sku for each in result.exceeded] == ["BoxUsage:g6e.xlarge"]
    with pytest.raises(Leaked, match=r"BoxUsage:g6e.xlarge with 3.73.* at most 3.722 ") as caught:
        require_within(result, "a.csv")
    assert caught.value.exit_code == 5


def test_usage_that_no_line_expects_comes_out_of_the_allowance(tmp_path: Path) -> None:
    more = [*rows(tags=False), ["USE1-NatGateway-Hours", "9.76", "Usage", "f-1", "USD"]]
    result = reconcile(FOUND, read_export(write_csv(tmp_path / "a.csv", OLD, more), "f-1"))
    assert [each.sku for each in result.exceeded] == ["other usage"]


@pytest.mark.parametrize(
    ("names", "row", "said"),
    [
        (OLD[:3], ["a", "1", "Usage"], "activate the tag 'HarnessFleet'"),
        (OLD[1:], ["1", "Usage", "f-1", "USD"], "lineitemusagetype"),
        (OLD, ["a", "1", "Usage", "f-1"], "4 fields instead of 5"),
        (OLD, ["a", "much", "Usage", "f-1", "USD"], "no amount of US dollars"),
        (OLD, ["a", "1", "Usage", "f-1", "EUR"], "no amount of US dollars"),
    ],
)
def test_what_is_no_export_of_this_study_is_bad_input(
    names: list[str], row: list[str], said: str, tmp_path: Path
) -> None:
    path = write_csv(tmp_path / "a.csv", names, [row])
    with pytest.raises(BadInput, match=said) as caught:
        read_export(path, "f-1")
    assert str(path) in caught.value.where


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_a_broken_file_is_bad_input(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\xff\x00broken")
    with pytest.raises(BadInput):
        read_export(tmp_path / name, "f-1")
