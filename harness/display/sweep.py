"""What a sweep found and removed, in the terminal. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.display.fleet import money_line
from harness.display.sanitize import clean

if TYPE_CHECKING:
    from harness.clock import Clock
    from harness.cloud.sweep import FleetLeft, Swept
    from harness.launch.standing import Standing


def sweep_table(
    found: Sequence[FleetLeft], regions: Sequence[str], clock: Clock,
    used: Mapping[str, Standing] | None = None,
) -> RenderableType:  # fmt: skip
    """A table a fleet; a sentence when there is nothing. `used`: fleets that stand as meant."""
    where = ", ".join(regions)
    if not found:
        return Text(clean(f"nothing that carries a fleet's tag is left in {where}"))
    parts: list[RenderableType] = []
    for fleet in found:
        state = "may be in use" if fleet.alive(clock) else "no host before a deadline"
        expires = fleet.expires_utc or "no deadline by tag"
        stands = (used or {}).get(fleet.fleet)
        if stands is not None:
            state = f"in use; it {money_line(stands)}"
        head = f"fleet {fleet.fleet} of study {fleet.study or '?'}, until {expires}: {state}"
        parts += [Text(clean(head), style="bold", overflow="fold"), _things(fleet), Text("")]
    return Group(*parts)


def _things(fleet: FleetLeft) -> Table:
    table = _table(("what", "id", "region", "found by"))
    for each in fleet.left:
        kind = f"{each.kind} (costs)" if each.costs else each.kind
        table.add_row(*(_cell(text) for text in (kind, each.id, each.region, each.why)))
    return table


def removed_table(swept: Swept) -> RenderableType:
    """What was removed and when."""
    table = _table(("removed", "id", "region", "at (UTC)"))
    for each in swept.removed:
        table.add_row(*(_cell(text) for text in (each.kind, each.id, each.region, each.utc[:19])))
    return Group(table, Text(""), Text(clean(f"nothing of fleet {swept.fleet} is left")))


def _table(columns: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _cell(text: str) -> Text:
    return Text(clean(text), overflow="fold")
