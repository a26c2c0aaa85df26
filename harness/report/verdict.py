"""The decisions: what was declared beside what was found, and the verdict over them."""

from __future__ import annotations

from harness.display import words
from harness.plan.decisions import Decision
from harness.receipts import Decided
from harness.report.evidence import Evidence
from harness.report.table import Cell, Row, Table, absent, cell, row


def verdict(evidence: Evidence) -> tuple[str, str]:
    """(sentence, 'pass', 'fail' or 'not run') over the decisions that decide."""
    sentence, outcome = _verdict(evidence)
    if evidence.results.incomplete is None:
        return sentence, outcome
    return f"The study is incomplete. {sentence}", outcome


def _verdict(evidence: Evidence) -> tuple[str, str]:
    declared = [d for d in evidence.plan.decisions if not d.exploratory]
    decided = {d.name: d for d in evidence.results.decisions}
    if not declared:
        return "The plan declares no decision, so there is no verdict.", words.NOT_RUN
    missing = [d.name for d in declared if d.name not in decided]
    if missing:
        return f"No verdict: {_listed(missing)} not decided.", words.NOT_RUN
    failed = [d.name for d in declared if not decided[d.name].passed]
    if not failed:
        of = {1: "The one decision", 2: "Both decisions"}.get(
            len(declared), f"All {len(declared)} decisions"
        )
        return f"{of} declared before the run passed.", "pass"
    passed = len(declared) - len(failed)
    return (
        f"{passed} of {len(declared)} declared decisions passed; failed: {_listed(failed)}.",
        "fail",
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names)


def decisions(evidence: Evidence) -> Table:
    """Every declared decision beside what was found."""
    decided = {d.name: d for d in evidence.results.decisions}
    columns = ("decision", "result", "value", "decided by", "margin", "statistic")
    rows = tuple(_decision(d, decided.get(d.name)) for d in evidence.plan.decisions)
    if not rows:
        return absent("decisions", "Decisions", "the plan declares none", columns)
    return Table(
        "decisions", "Decisions", columns, rows,
        note="Declared in the plan before any case was scored. Exploratory contrasts are shown and "
        "never decide. Passing a margin is not equality. Bounds speak of cases within one seed. "
        + _floor(evidence),
        words=frozenset({"statistic", "decided by", "result"}),
    )  # fmt: skip


def _floor(evidence: Evidence) -> str:
    """The flip floor in a sentence, beside every difference."""
    found = evidence.measurements.flip_floor if evidence.measurements else None
    if found is None:
        return "No flip floor was measured: what rounding alone changes is not known."
    changed = len(found.gained) + len(found.lost)
    return (
        f"Flip floor: {found.candidate}, answering again in batches of {found.batch}, changed in "
        f"{changed} of {found.cases} cases ({len(found.gained)} gained, {len(found.lost)} lost)."
    )


def _decision(declared: Decision, found: Decided | None) -> Row:
    kind = declared.statistic
    source = found.source if found else "plan.json"
    against = f", {declared.candidate}"
    against += f" against {declared.reference}" if declared.reference else ""
    timer = f" ({declared.timer})" if declared.timer else ""
    probes = f" ({declared.probes})" if declared.probes else ""
    value = found.value if found else None
    bound = found.bound_value if found else None
    cells = (
        _outcome(declared, found, source),
        cell(value, _number(kind, value), source=source),
        _bound(declared, bound, value, source),
        cell(declared.margin, words.statistic_value(kind, declared.margin), source="plan.json"),
        cell(kind, f"{kind}{timer}{probes}{against}", source="plan.json"),
    )
    detail = found.detail if found else ""
    return row(declared.name, cells, note=declared.claim, source=source, detail=detail)


def _number(kind: str, value: float | None) -> str | None:
    return None if value is None else words.statistic_value(kind, value)


def _bound(declared: Decision, bound: float | None, value: float | None, source: str) -> Cell:
    """What is compared with the margin: a confidence bound with its one-sided cover, or the
    value itself."""
    if declared.bound == "at-least":
        return cell(value, "value is at least the margin", source=source)
    if declared.bound == "at-most":
        return cell(value, "value is at most the margin", source=source)
    if bound is None:
        return cell(None, source=source)
    text = f"{declared.bound} bound {words.statistic_value(declared.statistic, bound)}"
    if declared.z is not None:
        text += f" ({words.one_sided(declared.z)})"
    return cell(bound, text, source=source)


def _outcome(declared: Decision, found: Decided | None, source: str) -> Cell:
    if found is None:
        return cell(None, source="plan.json")
    state = "pass" if found.passed else "fail"
    if declared.exploratory:
        return cell(
            found.passed, f"{'met' if found.passed else 'not met'} (exploratory)", source=source
        )
    return cell(found.passed, state, source=source, state=state)
