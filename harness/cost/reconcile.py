"""Bound, billed, difference: a line for each kind of usage. Billed above its bound is an error."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from harness.cost.billing import Billed
from harness.errors import Leaked
from harness.price_refresh import usage_matches
from harness.results import Resources
from harness.strict import Model


class Compared(Model):
    """One kind of usage."""

    sku: str
    what: str
    bound_usd: str
    billed_usd: str
    difference_usd: str
    """Bound less billed; negative is an error."""

    @property
    def exceeded(self) -> bool:
        """Whether more was billed than the bound."""
        return Decimal(self.difference_usd) < 0


class Reconciliation(Model):
    """The whole comparison."""

    fleet: str
    lines: tuple[Compared, ...]
    """By usage type of the bound's lines; what has none of its own is set against the allowance."""
    total: Compared
    left_out_usd: str
    """Taxes, credits and refunds, which the bound is before."""

    @property
    def exceeded(self) -> tuple[Compared, ...]:
        """Lines with more billed than bound."""
        return tuple(each for each in (*self.lines, self.total) if each.exceeded)


def reconcile(found: Resources, billed: Iterable[Billed]) -> Reconciliation:
    """Compare. Pure."""
    charges = tuple(billed)
    counted = [each for each in charges if each.counted]
    bounds: dict[str, Decimal] = {}
    names: dict[str, list[str]] = {}
    for line in found.lines:
        bounds[line.sku] = bounds.get(line.sku, Decimal(0)) + Decimal(line.bound_usd)
        names.setdefault(line.sku, []).append(line.what)
    spent = dict.fromkeys(bounds, Decimal(0))
    others = Decimal(0)
    for each in counted:
        sku = next((sku for sku in bounds if usage_matches(each.usage_type, sku)), None)
        if sku is None:
            others += Decimal(each.usd)
        else:
            spent[sku] += Decimal(each.usd)
    lines = [_compared(sku, _what(names[sku]), bounds[sku], spent[sku]) for sku in bounds]
    allowance = Decimal(found.allowance_usd)
    lines.append(_compared("other usage", "against the allowance", allowance, others))
    left_out = sum((Decimal(each.usd) for each in charges if not each.counted), Decimal(0))
    total = sum((Decimal(each.usd) for each in counted), Decimal(0))
    return Reconciliation(
        fleet=found.fleet,
        lines=tuple(lines),
        total=_compared("total", "all usage", Decimal(found.total_bound_usd), total),
        left_out_usd=f"{left_out:f}",
    )


def require_within(result: Reconciliation, path: str) -> None:
    """Raises Leaked, naming the first line that was billed above its bound."""
    if result.exceeded:
        first = result.exceeded[0]
        raise Leaked(
            f"{len(result.exceeded)} line(s) were billed above their bound: {first.sku} with "
            f"{first.billed_usd} USD, at most {first.bound_usd} USD were expected",
            where=path,
            next_command=f"look for what carries the tag of {result.fleet} in the billing console",
        )


def _what(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _compared(sku: str, what: str, bound: Decimal, billed: Decimal) -> Compared:
    return Compared(
        sku=sku,
        what=what,
        bound_usd=f"{bound:f}",
        billed_usd=f"{billed:f}",
        difference_usd=f"{bound - billed:f}",
    )
