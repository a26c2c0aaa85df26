"""What `harness check --account` prints, in 80 columns. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.display import words
from harness.display.sanitize import clean

if TYPE_CHECKING:
    from harness.cloud.account import Account


def account_table(found: Account) -> RenderableType:
    """Who, how long, what quota, and every permission."""
    who, quota = found.credentials, found.quota
    table = Table(title="Account", title_justify="left", box=box.SIMPLE, width=80, pad_edge=False)
    for column in ("what", "found"):
        table.add_column(column, overflow="fold")
    life = "no end known" if who.seconds_left is None else words.about(who.seconds_left)
    have = "not known" if quota.vcpus is None else f"{quota.vcpus:g}"
    need = "not known" if quota.needed is None else str(quota.needed)
    rows = [
        ("account", who.account),
        ("credentials of", who.arn),
        ("kind", who.kind),
        ("they live", f"{life}{f', until {who.expires_utc}' if who.expires_utc else ''}"),
        (f"vCPU quota for {quota.name}", f"{have}, this plan needs {need} {quota.note}".strip()),
    ]
    for row in rows:
        table.add_row(*(Text(clean(cell), overflow="fold") for cell in row))
    for each in found.permissions:
        table.add_row(clean(each.action), Text(clean(f"{each.verdict} ({each.how})")))
    return Group(table, *(Text(clean(f"note: {note}")) for note in found.notes))
