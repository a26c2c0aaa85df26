"""`harness prices --refresh`: a dated price file from AWS's public price list.

Read from offer files (docs.aws.amazon.com, 'Reading the service price list file for an AWS
service'; several hundred megabytes for EC2, so they are read as a stream) or from the Price List
Query API, whose entries have the same form. Every name of the old file must be found, or nothing
is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from harness import money
from harness.errors import BadInput, Refused
from harness.plan.kinds import Text
from harness.prices import Price, PriceFile
from harness.strict import Model

SERVICES = ("AmazonEC2", "AmazonVPC", "AmazonS3", "AWSDataTransfer")
"""Offers in which the names of a price file are found."""
LINUX = {
    "operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA",
    "capacitystatus": "Used",
}  # fmt: skip
"""What tells plain on-demand Linux hosts from the many other products of one usage type."""


class Offered(Model):
    """One on-demand price of one product."""

    usage_type: Text
    attributes: dict[str, str]
    usd: Text
    """The dearest tier."""
    unit: str
    published: Text
    """A day."""


class Change(Model):
    """A name of the price file before and after."""

    name: Text
    old_usd: str
    new_usd: str

    @property
    def changed(self) -> bool:
        """Whether the amount is another one."""
        return Decimal(self.old_usd) != Decimal(self.new_usd)


NEEDED = ("ec2/", "ipv4", "gp3/", "traffic/cross-zone", "traffic/internet", "s3/")
"""Starts of the names that bounds are made of; without one of these nothing is written."""
FACTORS: dict[tuple[str, str], Fraction] = {
    ("host-hour", "hrs"): Fraction(1),
    ("address-hour", "hrs"): Fraction(1),
    ("gateway-hour", "hrs"): Fraction(1),
    ("GB-month", "gb-mo"): Fraction(1),
    ("IOPS-month", "iops-mo"): Fraction(1),
    ("MBps-month", "mibps-mo"): Fraction(1),
    ("MBps-month", "gibps-mo"): Fraction(1, 1024),
    ("GB", "gb"): Fraction(1),
    ("1,000 requests", "requests"): Fraction(1000),
}
"""Our unit, AWS's unit in lower case: what AWS's price is multiplied by."""


def refreshed(old: PriceFile, offered: Iterable[Offered], source: str) -> PriceFile:
    """The price file with its names priced anew. Pure.

    Where a usage type has several products or tiers the dearest counts. A name that was not found
    is no longer verified, so it counts as unknown; raises Refused when a bound needs it.
    """
    found: dict[str, tuple[Decimal, Offered]] = {}
    for each in offered:
        for price in old.prices:
            if _same(price, each, old.region):
                usd = _in_our_unit(price, each, old.place)
                if price.name not in found or usd > found[price.name][0]:
                    found[price.name] = (usd, each)
    missing = [p.name for p in old.prices
               if p.name not in found and p.verified and p.name.startswith(NEEDED)]  # fmt: skip
    if missing or not found:
        raise Refused(
            f"the price list has no price for {', '.join(missing) or 'anything'}; nothing was "
            "written",
            where=old.place,
            next_command=f"give the offer files of {', '.join(SERVICES)} of {old.region}, "
            "each with --from",
        )
    # The oldest date of all that was read: no price is called newer than it is.
    checked = min(each.published for _, each in found.values())
    return PriceFile(
        schema="harness/prices/1", region=old.region, checked=checked, source=source,
        prices=tuple(_priced(price, found.get(price.name), checked) for price in old.prices),
    )  # fmt: skip


def _priced(price: Price, found: tuple[Decimal, Offered] | None, checked: str) -> Price:
    if found is None:
        gone = {"verified": False, "note": f"not found in the price list of {checked}"}
        return price.model_copy(update=gone)
    note = price.note if price.verified else None
    return price.model_copy(update={"usd": money.text(found[0]), "verified": True, "note": note})


def _in_our_unit(price: Price, each: Offered, where: str) -> Decimal:
    """AWS's price in the file's unit, rounded up at 6 places. Raises Refused for another unit."""
    factor = FACTORS.get((price.unit, each.unit.lower()))
    if factor is None:
        raise Refused(
            f"the price list gives '{price.name}' by '{each.unit}', which is not known to be "
            f"'{price.unit}'",
            where=where,
        )
    exact = Fraction(each.usd) * factor
    millionths = -(-exact.numerator * 10**6 // exact.denominator)
    return Decimal(millionths).scaleb(-6)


def changes(old: PriceFile, new: PriceFile) -> tuple[Change, ...]:
    """Every name with its amounts."""
    amounts = {price.name: price.usd for price in new.prices}
    return tuple(
        Change(name=price.name, old_usd=price.usd, new_usd=amounts[price.name])
        for price in old.prices
    )


def _same(price: Price, each: Offered, region: str) -> bool:
    if not usage_matches(each.usage_type, price.sku):
        return False
    place = each.attributes.get("fromRegionCode") or each.attributes.get("regionCode") or region
    if place != region:
        return False
    if price.name.startswith("ec2/"):
        return all(each.attributes.get(name) == value for name, value in LINUX.items())
    return True


def usage_matches(usage_type: str, sku: str) -> bool:
    """Whether a usage type is this one, with or without its regions' prefix ('USE1-', 'EUW1-')."""
    return re.fullmatch(rf"(?:[A-Z]{{2,4}}[0-9]?-){{0,2}}{re.escape(sku)}", usage_type) is not None


def offered_of(entry: Mapping[str, Any], published: str) -> Offered | None:
    """One entry of the Query API, or a product joined with its terms; None without a price."""
    attributes = entry["product"].get("attributes", {})
    usage = attributes.get("usagetype")
    tiers = [
        (Decimal(tier["pricePerUnit"]["USD"]), str(tier.get("unit", "")))
        for term in entry.get("terms", {}).get("OnDemand", {}).values()
        for tier in term["priceDimensions"].values()
        if "USD" in tier["pricePerUnit"]
    ]
    if not usage or not tiers:
        return None
    usd, unit = max(tiers)
    return Offered(
        usage_type=usage,
        attributes={name: str(value) for name, value in attributes.items()},
        usd=money.text(usd),
        unit=unit,
        published=published[:10],
    )


def read_offer(chunks: Iterable[str], wanted: frozenset[str], where: str) -> Iterator[Offered]:
    """On-demand prices of an offer file's products whose usage type is wanted (without its
    region's prefix). Memory holds those products only. Raises BadInput for what is no offer file.
    """
    products: dict[str, Any] = {}
    published = ""
    try:
        for path, value in _members(chunks):
            if path == ("publicationDate",):
                published = str(value)
            elif path[0] == "products":
                usage = str(value.get("attributes", {}).get("usagetype", ""))
                if any(usage_matches(usage, sku) for sku in wanted if usage.endswith(sku)):
                    products[path[1]] = value
            elif path[:2] == ("terms", "OnDemand") and path[2] in products:
                entry = {"product": products[path[2]], "terms": {"OnDemand": value}}
                found = offered_of(entry, published)
                if found is not None:
                    yield found
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as error:
        raise BadInput(f"is no offer file of the price list ({error})", where=where) from None
    if not published:
        raise BadInput("is no offer file: it has no publicationDate", where=where)


NESTED = {("products",), ("terms",), ("terms", "OnDemand"), ("terms", "Reserved")}
"""Objects that are too large to be read whole: their members are given one by one."""


def _members(chunks: Iterable[str]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, value) of every member of the outermost object and of `NESTED` ones, in order."""
    text = _Text(chunks)
    text.expect("{")
    yield from _object(text, ())


def _object(text: _Text, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if text.next_is("}"):
        text.expect("}")
        return
    while True:
        name = text.value()
        here = (*path, str(name))
        text.expect(":")
        if here in NESTED:
            text.expect("{")
            yield from _object(text, here)
        else:
            yield here, text.value()
        if text.next_is("}"):
            text.expect("}")
            return
        text.expect(",")


class _Text:
    """A window on a text that is too large to hold."""

    def __init__(self, chunks: Iterable[str]) -> None:
        self._chunks = iter(chunks)
        self._held = ""
        self._at = 0
        self._decoder = json.JSONDecoder()

    def next_is(self, mark: str) -> bool:
        """Whether that mark comes next, after white space."""
        while True:
            while self._at < len(self._held) and self._held[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._held):
                return self._held[self._at] == mark
            self._more()

    def expect(self, mark: str) -> None:
        """Take that mark. Raises ValueError when another one comes."""
        if not self.next_is(mark):
            raise ValueError(f"'{mark}' is missing")
        self._at += 1

    def value(self) -> Any:
        """Take one whole JSON value."""
        self.next_is("")
        while True:
            try:
                value, end = self._decoder.raw_decode(self._held, self._at)
            except json.JSONDecodeError:
                self._more()
                continue
            if end == len(self._held) and not isinstance(value, str | dict | list):
                self._more()  # a number may go on
                continue
            self._at = end
            return value

    def _more(self) -> None:
        chunk = next(self._chunks, None)
        if chunk is None:
            raise ValueError("it ends in the middle")
        self._held = self._held[self._at :] + chunk
        self._at = 0


def sources(old: PriceFile) -> frozenset[str]:
    """The usage types that a price file names."""
    return frozenset(price.sku for price in old.prices)
