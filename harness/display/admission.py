"""What `harness admit` and `harness up` print, in 80 columns. Pure."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from harness.admission import hourly_usd
from harness.display import words
from harness.display.check import bound_table
from harness.display.sanitize import clean
from harness.fleet.admitted import AdmittedFleet, Placement


def admission_tables(
    admitted: AdmittedFleet, notes: tuple[str, ...], after: tuple[str, ...]
) -> RenderableType:
    """The worst case, the deadline, where hosts will stand, and what to type next."""
    rows = [
        ("fleet", admitted.fleet),
        ("deadline", f"{admitted.deadline_utc} (absolute; nothing moves it)"),
        ("account, region", f"{admitted.account}, {admitted.region}"),
        ("image", f"{admitted.image_id} {admitted.image_name}"),
        ("SSH from", admitted.operator_cidr),
        ("bucket", f"{admitted.bucket}/{admitted.prefix}{_adopted(admitted)}"),
        ("launch", f"{admitted.attempt}; {placement(admitted.placement, admitted.one_zone)}"),
    ]
    if len(admitted.placements) > 1:
        rest = [placement(each, admitted.one_zone) for each in admitted.placements[1:]]
        rows.append(("then", f"{'; '.join(rest)} (harness up tries these in this order)"))
    parts: list[RenderableType] = [bound_table(admitted.bound)]
    parts += [Text(clean(f"{name:<16} {value}"), overflow="fold") for name, value in rows]
    parts += [Text(clean(f"note: {each}")) for each in notes]
    parts += [Text(""), Text("Nothing is launched yet. Next:")]
    parts += [Text(clean(f"  {line}"), overflow="fold") for line in after]
    return Group(*parts)


def placement(each: Placement, one_zone: bool) -> str:
    """'2 x g6e.xlarge in us-east-1a, cluster placement group'."""
    where = each.zones[0] if one_zone else " + ".join(each.zones)
    group = ", cluster placement group" if one_zone else ""
    return f"{len(each.zones)} x {each.type} in {where}{group}"


def _adopted(admitted: AdmittedFleet) -> str:
    return " (there already; adopted)" if admitted.bucket_present else " (will be made and kept)"


def hourly(admitted: AdmittedFleet) -> str:
    """What the hosts cost an hour, from the admitted bound's own line."""
    usd = hourly_usd(admitted.bound, admitted.count)
    return "an unknown amount an hour" if usd is None else f"{words.money_up(usd)} an hour"
