"""The final table in the terminal: results and cost as rich renderables, 80 columns wide.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.display import words
from harness.display.sanitize import clean
from harness.plan import Plan
from harness.receipts import Decided
from harness.results import ArmResult, ModelResult, PhaseResult, Resources, Results, Tally

PASS, FAIL = "PASS", "FAIL"


def final_table(
    results: Results,
    resources: Resources | None,
    *,
    plan: Plan | None = None,
    report: Path | None = None,
) -> RenderableType:
    """Accuracy, decisions, times, bytes, cost and where the report is.

    `plan` adds the order of families and the z label of each bound; without `resources` the cost
    is 'not run'.
    """
    parts: list[RenderableType] = [
        Text(clean(f"{results.plan}  run {results.run}"), style="bold"),
        Text(""),
        *_incomplete(results),
        _accuracy(results, plan),
        Text(""),
        _decisions(results.decisions, plan),
        Text(""),
        _execution(results.arms),
        Text(""),
        *_serving(results.serving),
        _cost(resources),
    ]
    if results.not_run:
        parts.append(Text(clean(f"not run: {', '.join(results.not_run)}")))
    if report is not None:
        where = Text(clean(f"report: {report}"), overflow="fold")
        parts.append(where)
    return Group(*parts)


def _incomplete(results: Results) -> list[RenderableType]:
    found = results.incomplete
    if found is None:
        return []
    lines = [f"incomplete: {found.why}"]
    for what, names in (("arms not run", found.arms_not_run), ("not decided", found.not_decided)):
        if names:
            lines.append(f"{what}: {', '.join(names)}")
    return [*(Text(clean(line), overflow="fold") for line in lines), Text("")]


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", padding=(0, 1, 0, 0), pad_edge=False,
        box=box.SIMPLE_HEAD, show_edge=False,
    )  # fmt: skip
    for i, name in enumerate(columns):
        table.add_column(
            clean(name),
            justify="left" if i == 0 else "right",
            overflow="fold",
        )
    return table


def _accuracy(results: Results, plan: Plan | None) -> RenderableType:
    if not results.models:
        return Text(f"accuracy: {words.NOT_RUN}")
    models = results.models
    table = _table("Accuracy", ["cases", *(m.name for m in models)])
    table.add_row("all", *(_of(m.overall) for m in models))
    table.add_row("", *(_share(m.overall) for m in models))
    for family in _families(models, plan):
        table.add_row(clean(family), *(_of(m.families.get(family)) for m in models))
    table.add_row("held-out wordings", *(_of(m.held_out) for m in models))
    for probe in dict.fromkeys(name for m in models for name in m.retention):
        losses = (m.retention.get(probe) for m in models)
        shown = (words.NOT_RUN if x is None else words.loss(x) for x in losses)
        table.add_row(clean(f"{probe}, loss"), *shown)
    return table


def _families(models: Sequence[ModelResult], plan: Plan | None) -> list[str]:
    found = dict.fromkeys(name for m in models for name in m.families)
    declared = plan.data.tasks.families if plan is not None else ()
    return [*(f for f in declared if f in found), *(f for f in found if f not in declared)]


def _of(tally: Tally | None) -> str:
    if tally is None or tally.cases == 0:
        return words.NOT_RUN
    return f"{tally.correct} / {tally.cases}"


def _share(tally: Tally) -> str:
    return words.percent(tally.correct / tally.cases) if tally.cases else words.NOT_RUN


def _decisions(decisions: Sequence[Decided], plan: Plan | None) -> RenderableType:
    if not decisions:
        return Text(f"decisions: {words.NOT_RUN}")
    table = _table("Decisions", ["decision", "found", "margin", "result"])
    for decided in decisions:
        result = Text(PASS if decided.passed else FAIL, style="green" if decided.passed else "red")
        if decided.exploratory:
            result = Text("met" if decided.passed else "not met").append("\nexploratory")
        table.add_row(
            clean(decided.name),
            _found(decided, plan),
            words.statistic_value(decided.statistic, decided.margin),
            result,
        )
    return table


def _found(decided: Decided, plan: Plan | None) -> str:
    """The number that is compared with the margin, and which one it is."""
    if decided.bound in ("at-least", "at-most"):
        number, what = decided.value, decided.bound.replace("-", " ")
    else:
        number, what = decided.bound_value, f"{decided.bound} bound{_label(decided, plan)}"
    if number is None:
        return "missing"
    return f"{words.statistic_value(decided.statistic, number)}\n{what}"


def _label(decided: Decided, plan: Plan | None) -> str:
    declared = {d.name: d.z for d in plan.decisions} if plan is not None else {}
    z = declared.get(decided.name)
    return "" if z is None else f", {words.one_sided(z)}"


def _execution(arms: Sequence[ArmResult]) -> RenderableType:
    if not arms:
        return Text(f"training: {words.NOT_RUN}")
    table = _table("Execution", ["measurement", *(a.name for a in arms)])
    for header, values in (
        ("active time", [_seconds(a.timers.active) for a in arms]),
        ("whole process", [_seconds(a.timers.process) for a in arms]),
        ("allocated device time", [_seconds(a.allocated_seconds) for a in arms]),
        ("speed, tokens/s", [words.rate(a.tokens_per_s) for a in arms]),
        ("sent, all hosts", [words.decimal_bytes(a.sent_bytes) for a in arms]),
        ("peak memory", [words.binary_bytes(a.peak_memory_bytes) for a in arms]),
        ("final loss", [words.loss(a.final_loss) for a in arms]),
    ):
        table.add_row(header, *values)
    return table


def _serving(phases: Sequence[PhaseResult]) -> list[RenderableType]:
    if not phases:
        return []
    table = _table("Serving", ["phase", "answered", "requests/s", "p50", "p95", "failed first"])
    for phase in phases:
        rate = phase.requests_per_s
        table.add_row(
            Text(clean(phase.name)),
            "not known" if phase.uncounted else f"{phase.answered} / {phase.requests}",
            words.NOT_RUN if rate is None else f"{rate:.2f}",
            _seconds(phase.latency_s.get("p50")),
            _seconds(phase.latency_s.get("p95")),
            str(phase.first_failures),
        )
        if phase.why:
            said = phase.why if phase.outcome == "cut" else f"failed: {phase.why}"
            table.add_row(Text(clean(f"  {said}"), overflow="fold"))
    return [table, Text("")]


def _seconds(value: float | None) -> str:
    return words.NOT_RUN if value is None else words.seconds(value)


def _cost(resources: Resources | None) -> RenderableType:
    if resources is None:
        return Text(f"cost: {words.NOT_RUN}")
    bound, ceiling = (
        words.money_up(resources.total_bound_usd),
        words.money_up(resources.ceiling_usd),
    )
    line = f"cost: at most {bound} of the ceiling {ceiling} (a bound, not an invoice)"
    return Text(line)
