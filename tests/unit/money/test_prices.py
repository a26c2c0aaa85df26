"""Prices are dated; what is unknown or unverified is refused with what and where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import BadInput, Refused
from harness.prices import PRICE_FOLDER, load_prices

US_EAST_1 = {
    "ec2/g6e.xlarge": "1.861",
    "ec2/g6e.2xlarge": "2.24208",
    "ec2/g6e.4xlarge": "3.00424",
    "ec2/g6e.8xlarge": "4.52856",
    "ec2/g6e.12xlarge": "10.49264",
    "ec2/g6e.16xlarge": "7.57719",
    "ec2/g6e.24xlarge": "15.06559",
    "ec2/g6e.48xlarge": "30.13118",
    "ec2/p5en.48xlarge": "63.296",
    "ipv4": "0.005",
    "gp3/storage": "0.08",
    "gp3/iops": "0.005",
    "gp3/throughput": "0.04",
    "traffic/cross-zone": "0.01",
    "traffic/inter-region": "0.02",
    "traffic/internet": "0.09",
    "s3/storage": "0.023",
    "s3/put": "0.005",
    "s3/get": "0.0004",
    "nat/hours": "0.045",
    "nat/traffic": "0.045",
}


@pytest.mark.parametrize("name", US_EAST_1)
def test_every_checked_price_is_there(name: str) -> None:
    assert load_prices("us-east-1").price(name).usd == US_EAST_1[name]


def test_the_file_has_its_region_date_and_source() -> None:
    prices = load_prices("us-east-1")
    assert (prices.region, prices.checked) == ("us-east-1", "2026-11")
    assert prices.source
    assert {price.name for price in prices.prices} == {*US_EAST_1, "ec2/g5.2xlarge"}


def test_an_unverified_price_counts_as_unknown() -> None:
    with pytest.raises(Refused) as caught:
        load_prices("us-east-1").price("ec2/g5.2xlarge")
    assert "not verified" in str(caught.value)
    assert caught.value.where == "harness/price_files/us-east-1.json"


def test_an_unknown_price_is_refused_by_name() -> None:
    with pytest.raises(Refused, match=r"'ec2/p6\.48xlarge' is unknown") as caught:
        load_prices("us-east-1").price("ec2/p6.48xlarge")
    assert caught.value.exit_code == 3


def test_a_region_without_prices_is_refused_with_those_that_have_them() -> None:
    with pytest.raises(Refused, match=r"no prices for the region 'eu-west-9' \(known: us-east-1\)"):
        load_prices("eu-west-9")


def changed(folder: Path, **fields: object) -> Path:
    value = json.loads((PRICE_FOLDER / "us-east-1.json").read_text())
    value.update(fields)
    (folder / "us-east-1.json").write_text(json.dumps(value))
    return folder


PRICE = {"name": "ipv4", "sku": "x", "unit": "h", "usd": "0.005", "verified": True}


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"checked": "November"}, "/checked"),
        ({"prices": [PRICE, PRICE]}, ""),
        ({"prices": [{**PRICE, "usd": 0.005}]}, "/prices/0/usd"),
        ({"prices": [{**PRICE, "usd": "0.0000001"}]}, "/prices/0/usd"),
        ({"prices": [{**PRICE, "usd": "-1"}]}, "/prices/0/usd"),
        ({"region": "us-west-2"}, "/region"),
        ({"currency": "EUR"}, "/currency"),
    ],
)
def test_a_broken_price_file_is_bad_input(
    tmp_path: Path, fields: dict[str, object], pointer: str
) -> None:
    with pytest.raises(BadInput) as caught:
        load_prices("us-east-1", folder=changed(tmp_path, **fields))
    assert caught.value.where == f"{tmp_path / 'us-east-1.json'}#{pointer}"
