"""Dated price files. A price that is in none, or not verified, is unknown: refused, not guessed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from harness import money
from harness.errors import BadInput, Refused
from harness.plan.kinds import Text
from harness.results import CostLine
from harness.strict import Model, load_file

PRICE_FOLDER = Path(__file__).parent / "price_files"
"""One file a region; package data."""

UnitPrice = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$")]
"""US dollars a unit; 6 decimal places at most, so that amounts stay within 18."""


class Price(Model):
    """One unit price."""

    name: Text
    """What the product asks for, such as 'ec2/g6e.xlarge'."""
    sku: Text
    """AWS's usage type, as a bill shows it."""
    unit: Text
    usd: UnitPrice
    verified: bool
    """False: seen somewhere, not confirmed; it counts as unknown."""
    note: Text | None = None


class PriceFile(Model):
    """The on-demand prices of one region as they were read on one date."""

    schema_: Literal["harness/prices/1"] = Field(alias="schema")
    region: Text
    checked: Annotated[str, StringConstraints(pattern=r"^20[0-9]{2}-[01][0-9](-[0-3][0-9])?$")]
    """When they were read: a day, or a month where no day was kept."""
    source: Text
    prices: Annotated[tuple[Price, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> PriceFile:
        names = [price.name for price in self.prices]
        if len(set(names)) != len(names):
            raise ValueError("a price is given twice")
        return self

    def price(self, name: str) -> Price:
        """The verified price of that name. Raises Refused when it is unknown."""
        for price in self.prices:
            if price.name == name:
                if price.verified:
                    return price
                raise Refused(
                    f"the price of '{name}' is not verified, so it counts as unknown "
                    f"(confirm it on AWS's page, then mark it)",
                    where=self.place,
                )
        raise Refused(
            f"the price of '{name}' is unknown, and nothing is launched at an unknown price",
            where=self.place,
        )

    def line(self, name: str, what: str, quantity: Decimal) -> CostLine:
        """`quantity` of what has that price. Raises Refused when the price is unknown."""
        price = self.price(name)
        return CostLine(
            what=what,
            quantity=money.text(quantity),
            unit=price.unit,
            unit_price_usd=price.usd,
            sku=price.sku,
            price_date=self.checked,
            bound_usd=money.text(money.multiply(quantity, money.amount(price.usd))),
        )

    @property
    def place(self) -> str:
        """The file of this region, as messages name it."""
        return f"harness/price_files/{self.region}.json"


def load_prices(region: str, *, folder: Path = PRICE_FOLDER) -> PriceFile:
    """The price file of a region. Raises Refused when there is none, BadInput when it is broken."""
    path = folder / f"{region}.json"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.json"))) or "none"
        raise Refused(
            f"there are no prices for the region '{region}' (known: {known})", where=str(folder)
        )
    prices = load_file(PriceFile, path)
    if prices.region != region:
        raise BadInput(f"holds the prices of '{prices.region}'", where=f"{path}#/region")
    return prices
