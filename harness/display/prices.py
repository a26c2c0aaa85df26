"""A price file in the terminal, 80 columns; what a refresh changed is marked. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.display.sanitize import clean
from harness.price_refresh import Change
from harness.prices import PriceFile


def price_table(prices: PriceFile, changed: Sequence[Change]) -> RenderableType:
    """Name, price, unit and AWS's usage type; the old price where it was another one."""
    before = {each.name: each.old_usd for each in changed if each.changed}
    table = Table(
        title=clean(f"Prices of {prices.region}, {prices.checked}, USD"), title_justify="left",
        title_style="bold", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for i, name in enumerate(("name", "price", "unit", "usage type")):
        table.add_column(name, justify="right" if i == 1 else "left", overflow="fold")
    for price in prices.prices:
        said = price.usd if price.verified else f"{price.usd} (unverified)"
        if price.name in before:
            said = f"{said} (was {before[price.name]})"
        table.add_row(*(Text(clean(cell), overflow="fold") for cell in
                        (price.name, said, price.unit, price.sku)))  # fmt: skip
    return Group(table, Text(""), Text(clean(prices.source), overflow="fold"))
