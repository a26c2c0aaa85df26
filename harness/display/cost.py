"""Cost in the terminal: every line of the bound, and bound beside billed. 80 columns, pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.clock import parse_utc
from harness.cost.reconcile import Compared, Reconciliation
from harness.display import words
from harness.display.sanitize import clean
from harness.results import GoneThing, Resources


def cost_table(found: Resources) -> RenderableType:
    """resources.json as a person reads it."""
    head = Text(clean(f"fleet {found.fleet}  ({found.fleet_kind}, {found.state})"), style="bold")
    parts: list[RenderableType] = [head, Text("")]
    if found.hosts:
        parts += [_hosts(found), Text("")]
    parts += [_lines(found), Text("")]
    if found.removed:
        parts += [_removed(found.removed), Text("")]
    parts += [_text(f"deadline, {proof}") for proof in found.deadlines]
    parts += [_text(f"still there: {thing}") for thing in found.residue]
    carried = ", ".join(found.studies) or "none"
    parts.append(_text(f"studies: {carried}; attempts: {found.attempts}"))
    if found.preservation_sha256:
        parts.append(_text(f"preservation: {found.preservation_sha256}"))
    parts.append(_text(found.note))
    return Group(*parts)


def _hosts(found: Resources) -> RenderableType:
    table = _table("Hosts", ("host", "type", "launched (UTC)", "ended (UTC)", "lived"))
    for host in found.hosts:
        name = host.host if host.attempt is None else f"{host.host} of {host.attempt}"
        lived = "still there" if host.seconds is None else words.seconds(host.seconds)
        table.add_row(
            _cell(name),
            _cell(host.type),
            _moment(host.launched_utc),
            _moment(host.ended_utc),
            lived,
        )
    return table


def _removed(things: tuple[GoneThing, ...]) -> RenderableType:
    table = _table("What stood besides hosts", ("what", "id", "gone (UTC)"))
    for each in things:
        gone = _moment(each.gone_utc) if each.gone_utc else "still there"
        table.add_row(_cell(each.kind), _cell(each.id), gone)
    return table


def _lines(found: Resources) -> RenderableType:
    table = _table("Cost at most, USD", ("what", "quantity", "unit price", "at most"))
    for line in found.lines:
        table.add_row(
            _cell(line.what),
            f"{_short(line.quantity)} {line.unit}",
            f"{line.unit_price_usd}\n{line.sku} {line.price_date}",
            _short(line.bound_usd),
        )
    table.add_row("allowance", "", "", found.allowance_usd)
    table.add_section()
    table.add_row(Text("total, a bound", style="bold"), "", "", _short(found.total_bound_usd))
    table.add_row("ceiling", "", "", found.ceiling_usd)
    return table


def reconciliation_table(result: Reconciliation) -> RenderableType:
    """Bound, billed and difference by usage type."""
    table = _table("Bound and bill, USD", ("usage", "bound", "billed", "difference"))
    for each in (*result.lines, result.total):
        table.add_row(
            _cell(f"{each.sku}: {each.what}"),
            _short(each.bound_usd),
            _short(each.billed_usd),
            _difference(each),
        )
    left_out = f"left out (taxes, credits, refunds): {result.left_out_usd} USD"
    return Group(table, Text(""), _text(left_out))


def _difference(each: Compared) -> Text:
    if each.exceeded:
        return Text(f"{_short(each.difference_usd)} OVER", style="bold red")
    return Text(_short(each.difference_usd))


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", padding=(0, 1, 0, 0), pad_edge=False,
        box=box.SIMPLE_HEAD, show_edge=False,
    )  # fmt: skip
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i == 0 else "right", overflow="fold")
    return table


def _short(number: str) -> str:
    """At most six decimals, rounded away from zero; the file has all of them."""
    places = number.partition(".")[2]
    return number if len(places) <= 6 else words.places_up(number, 6)


def _moment(utc: str | None) -> str:
    if utc is None:
        return "-"
    try:
        return parse_utc(utc).strftime("%m-%d %H:%M:%S")
    except ValueError:
        return clean(utc)


def _cell(text: str) -> Text:
    return Text(clean(text), overflow="fold")


def _text(text: str) -> Text:
    return Text(clean(text), overflow="fold")
