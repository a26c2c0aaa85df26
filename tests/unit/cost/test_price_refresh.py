"""Prices from offer files of the published form; what is not found is never called verified."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.cli import prices as prices_command
from harness.cli.app import app
from harness.errors import BadInput, Refused
from harness.price_refresh import read_offer, refreshed, sources, usage_matches
from harness.prices import PRICE_FOLDER, PriceFile, load_prices
from harness.strict import load_file

OLD = load_prices("us-east-1")
UNITS = {
    "host-hour": "Hrs", "address-hour": "Hrs", "gateway-hour": "Hrs", "GB-month": "GB-Mo",
    "IOPS-month": "IOPS-Mo", "MBps-month": "GiBps-mo", "GB": "GB", "1,000 requests": "Requests",
}  # fmt: skip


def product(sku: str, usage: str, **attributes: str) -> dict[str, Any]:
    family = {"sku": sku, "productFamily": "x"}
    return {**family, "attributes": {"usagetype": usage, "regionCode": "us-east-1", **attributes}}


def term(sku: str, *tiers: str, unit: str) -> dict[str, Any]:
    dimensions = {
        f"{sku}.JRTCKXETXF.{i}": {
            "rateCode": f"{sku}.JRTCKXETXF.{i}", "description": "x", "beginRange": str(i),
            "endRange": "Inf", "unit": unit, "pricePerUnit": {"USD": usd}, "appliesTo": [],
        }
        for i, usd in enumerate(tiers)
    }  # fmt: skip
    return {f"{sku}.JRTCKXETXF": {"offerTermCode": "JRTCKXETXF", "sku": sku,
                                  "priceDimensions": dimensions, "termAttributes": {}}}  # fmt: skip


def offer(*, leave: tuple[str, ...] = (), dearer: str = "") -> dict[str, Any]:
    """An offer file with every name of the price file, and products that must not be taken."""
    linux = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA",
             "capacitystatus": "Used"}  # fmt: skip
    products, terms = {}, {}
    for i, price in enumerate(OLD.prices):
        if price.name in leave:
            continue
        sku = f"SKU{i}"
        factor = {"1,000 requests": 1000, "MBps-month": 1 / 1024}.get(price.unit, 1)
        usd = f"{float(price.usd) / factor:.10f}"
        host = price.name.startswith("ec2/")
        usage = f"USE1-EUW1-{price.sku}" if price.name == "traffic/inter-region" else price.sku
        products[sku] = product(sku, usage, **(linux if host else {}))
        tiers = ("0.0000000000", usd) if price.sku.endswith("Out-Bytes") else (usd,)
        if price.name == dearer:
            tiers = ("99.5",)
        terms[sku] = term(sku, *tiers, unit=UNITS[price.unit])
        for more, changed in (("W", {"operatingSystem": "Windows"}),
                              ("R", {"regionCode": "eu-west-1"})):  # fmt: skip
            if host or more == "R":
                products[sku + more] = product(sku + more, price.sku, **{**linux, **changed})
                terms[sku + more] = term(sku + more, "1234", unit=UNITS[price.unit])
    return {
        "formatVersion": "v1.0", "disclaimer": "x", "offerCode": "AmazonEC2", "version": "1",
        "publicationDate": "2026-11-28T01:02:03Z", "products": products,
        "terms": {"OnDemand": terms, "Reserved": {"SKU0": {"x": {"priceDimensions": {}}}}},
        "attributesList": {},
    }  # fmt: skip


def chunks(text: str, size: int) -> Iterator[str]:
    return (text[i : i + size] for i in range(0, len(text), size))


def read(value: dict[str, Any], size: int = 997, indent: int | None = None) -> PriceFile:
    found = read_offer(chunks(json.dumps(value, indent=indent), size), sources(OLD), "offer.json")
    return refreshed(OLD, found, "a test")


@pytest.mark.parametrize(("size", "indent"), [(7, None), (997, 2), (10**7, None)])
def test_every_name_is_found_whatever_the_pieces(size: int, indent: int | None) -> None:
    new = read(offer(), size, indent)
    assert {p.name: p.usd for p in new.prices} == {p.name: p.usd for p in OLD.prices}
    assert all(price.verified for price in new.prices)
    assert (new.checked, new.region) == ("2026-11-28", "us-east-1")


def test_a_new_price_is_taken_and_units_are_ours() -> None:
    new = read(offer(dearer="ec2/g6e.xlarge"))
    assert new.price("ec2/g6e.xlarge").usd == "99.5"
    assert (new.price("s3/put").usd, new.price("gp3/throughput").usd) == ("0.005", "0.04")


@pytest.mark.parametrize("name", ["ec2/g6e.xlarge", "ipv4", "s3/get", "traffic/internet"])
def test_a_price_that_bounds_need_and_is_not_found_is_refused(name: str) -> None:
    with pytest.raises(Refused, match=name):
        read(offer(leave=(name,)))


def test_another_name_that_is_not_found_counts_as_unknown_from_then_on() -> None:
    new = read(offer(leave=("nat/hours",)))
    with pytest.raises(Refused, match="not verified"):
        new.price("nat/hours")


def test_an_unknown_unit_is_refused() -> None:
    value = offer()
    dimension = next(iter(value["terms"]["OnDemand"]["SKU0"].values()))["priceDimensions"]
    next(iter(dimension.values()))["unit"] = "Quantity"
    with pytest.raises(Refused, match="'Quantity'"):
        read(value)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"publicationDate": "2026-11-28"', "{}", "<x>"])
def test_what_is_no_offer_file_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match="no offer file"):
        list(read_offer([text], sources(OLD), "offer.json"))


def test_prefixes_of_regions() -> None:
    assert usage_matches("USE1-PublicIPv4:InUseAddress", "PublicIPv4:InUseAddress")
    assert usage_matches("USE1-EUW1-AWS-Out-Bytes", "AWS-Out-Bytes")
    assert not usage_matches("UnusedBox-BoxUsage:g6e.xlarge", "BoxUsage:g6e.xlarge")
    assert not usage_matches("BoxUsage:g6e.xlarge2", "BoxUsage:g6e.xlarge")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["prices", *arguments])


def test_the_command_prints_and_refreshes_from_a_file_or_an_address(tmp_path: Path) -> None:
    assert prices_command.CHUNK
    result = run()
    assert result.exit_code == 0 and "ec2/g6e.xlarge" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    path, out = tmp_path / "offer.json", tmp_path / "us-east-1.json"
    path.write_text(json.dumps(offer(dearer="ipv4")))
    before = (PRICE_FOLDER / "us-east-1.json").read_bytes()
    result = run("--refresh", "--from", str(path), "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "99.5 (was 0.005)" in " ".join(result.output.split())
    assert load_file(PriceFile, out).price("ipv4").usd == "99.5"
    assert str(tmp_path) not in out.read_text()
    assert (PRICE_FOLDER / "us-east-1.json").read_bytes() == before
    with served(path.read_bytes()) as address:
        again = tmp_path / "again.json"
        result = run("--refresh", "--from", address, "--out", str(again))
    assert result.exit_code == 0, result.output
    assert load_file(PriceFile, again).prices == load_file(PriceFile, out).prices


def test_nothing_is_written_when_it_fails(tmp_path: Path) -> None:
    (tmp_path / "offer.json").write_text(json.dumps(offer(leave=("ipv4",))))
    out = tmp_path / "new.json"
    result = run("--refresh", "--from", str(tmp_path / "offer.json"), "--out", str(out))
    assert result.exit_code == 3 and not out.exists()
    assert run("--refresh", "--from", "ftp://x/y", "--out", str(out)).exit_code == 2


class served:
    """A server of this computer with one file."""

    def __init__(self, body: bytes) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}/offer.json"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
