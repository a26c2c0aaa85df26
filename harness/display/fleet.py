"""A fleet that is not ended, in the terminal, in 80 columns. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from harness.display import words
from harness.display.sanitize import clean

if TYPE_CHECKING:
    from harness.launch.standing import Standing


def fleet_lines(found: Standing, named: Callable[[str], str]) -> RenderableType:
    """Its state, hosts, cost and the next command; `named` puts the runs folder into a command."""
    lines = [f"host-{each.slot}  {each.instance_id}  {each.type}  {each.zone}"
             for each in found.hosts]  # fmt: skip
    lines += [
        f"deadline {words.utc(found.deadline_utc)}; nothing moves it",
        money_line(found),
        f"studies: {', '.join(found.studies) or 'none has joined yet'}",
        f"next: {named(found.next)}",
    ]
    head = Text(clean(f"fleet {found.fleet} of study {found.study}: {found.state}"), style="bold")
    head.overflow = "fold"
    return Group(head, *(Text(clean(line), overflow="fold") for line in lines))


def money_line(found: Standing) -> str:
    """What it costs an hour now, and at most."""
    hourly = "an unknown amount" if found.hourly_usd is None else words.money_up(found.hourly_usd)
    now = f"{hourly} an hour" if found.hosts else f"nothing now, {hourly} an hour once it stands"
    most = f"{words.money_up(found.bound_usd)} of the ceiling {words.money(found.ceiling_usd)}"
    return f"costs {now}; at most {most}"
