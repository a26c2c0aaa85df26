"""What `harness check` and `harness develop` print, in 80 columns."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.admission import Bound
from harness.develop import Development
from harness.display import words
from harness.display.sanitize import clean
from harness.plan.check import CheckReport
from harness.results import Predicted


def check_tables(report: CheckReport) -> RenderableType:
    """What is declared, the worst case against the ceiling, times against the deadline."""
    parts: list[RenderableType] = [Text(clean(f"{report.plan}  {report.plan_hash}"), style="bold")]
    declared = _table("Declared", "what", "value")
    for row in report.rows:
        declared.add_row(clean(row.what), clean(row.value))
    parts += [declared, bound_table(report.bound), _times(report.times)]
    parts.append(Text(clean(_share(report))))
    for finding in report.findings:
        parts.append(Text(clean(f"{finding.level}: {finding.sentence(report.path)}")))
    if not report.findings:
        parts.append(Text("No fault found."))
    return Group(*parts)


def _share(report: CheckReport) -> str:
    """How much of the deadline is spoken for; a stage that nobody measured says nothing."""
    deadline = words.about(report.deadline_s)
    unknown = [row.what for row in report.times if row.predicted_s is None]
    if len(unknown) == len(report.times):
        return f"no stage's time is known; the deadline is after {deadline}"
    rest = f", {len(unknown)} of {len(report.times)} stages not known" if unknown else ""
    return f"{words.about(report.known_s)} of a deadline of {deadline} are spoken for{rest}"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE, width=80, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def bound_table(bound: Bound | None) -> RenderableType:
    """The worst case line by line, its total and the ceiling."""
    if bound is None:
        return Text("Worst case: unknown (see below).")
    table = _table(f"Worst case ({bound.fleet_kind})", "line", "quantity", "unit price", "USD")
    for line in bound.lines:
        table.add_row(
            clean(line.what),
            clean(f"{line.quantity} {line.unit}"),
            clean(f"{line.unit_price_usd} ({line.price_date})"),
            words.money_up(line.bound_usd),
        )
    table.add_row("allowance", "", "", words.money_up(bound.allowance_usd))
    table.add_row("total", "", "", words.money_up(bound.total_usd), style="bold")
    table.add_row("ceiling", "", "", words.money(bound.ceiling_usd))
    return table


def _times(times: tuple[Predicted, ...]) -> RenderableType:
    table = _table("Predicted times", "stage", "seconds", "source")
    for row in times:
        shown = "unknown" if row.predicted_s is None else words.seconds(row.predicted_s)
        table.add_row(clean(row.what), shown, clean(row.source))
    return table


def development_table(found: Development) -> RenderableType:
    """Development scores by family and model."""
    families = sorted({family for model in found.models for family in model.families})
    table = _table(f"Development cases  {found.run}", "model", "all", *families, "valid JSON", "s")
    for model in found.models:
        cells = [f"{model.overall.correct}/{model.overall.cases}"]
        for family in families:
            tally = model.families.get(family)
            cells.append(f"{tally.correct}/{tally.cases}" if tally else "-")
        table.add_row(model.name, *cells, str(model.valid_json), f"{model.seconds:.1f}")
    trained = ", ".join(f"{arm} {words.about(s)}" for arm, s in found.train_seconds.items())
    return Group(table, Text(clean(f"trained: {trained}")))
