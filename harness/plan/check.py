"""`harness check`: what a plan declares, what is wrong with it, its worst cost and its times.

Pure: it reads nothing but its arguments and prints nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.admission import Bound, Earlier, FleetKind, worst_case
from harness.errors import BadInput, Refused, command
from harness.plan.decision_rules import decision_findings
from harness.plan.declared import Row, declared_rows
from harness.plan.finding import Finding, error
from harness.plan.host_rules import host_findings
from harness.plan.kinds import Sha256
from harness.plan.load import LoadedPlan
from harness.plan.pins import pin_findings
from harness.plan.plan import Plan
from harness.plan.rules import study_findings
from harness.plan.times import known_seconds, predict, time_findings
from harness.prepared import Prepared
from harness.prices import PriceFile
from harness.results import Predicted
from harness.strict import Model


class CheckReport(Model):
    """All that `harness check` prints."""

    plan: str
    plan_hash: Sha256
    path: str
    fleet_kind: FleetKind
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    """Errors first, each kind in the order of the plan."""
    bound: Bound | None
    """The worst case; null when a price or size is unknown (a finding says which)."""
    times: tuple[Predicted, ...]
    known_s: float
    """Sum of the predicted times that are known."""
    deadline_s: int

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What stops `prepare` and `admit`."""
        return tuple(each for each in self.findings if each.level == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What is shown and may be meant."""
        return tuple(each for each in self.findings if each.level == "warning")


def check_plan(
    loaded: LoadedPlan,
    *,
    prices: PriceFile | None = None,
    fleet_kind: FleetKind | None = None,
    earlier: Sequence[Earlier] = (),
    prepared: Prepared | None = None,
) -> CheckReport:
    """Check a plan for one kind of fleet (absent: AWS where the plan declares it, else local).

    `prices` are needed for AWS only; `earlier` are launches that were made; `prepared` gives exact
    token counts. Raises nothing: what is wrong is a finding.
    """
    plan = loaded.plan
    kind: FleetKind = fleet_kind or ("stack" if plan.hosts.aws else "local")
    times = predict(plan, kind, prepared)
    bound, refused = _bound(plan, prices, kind, earlier)
    findings = [
        *pin_findings(plan),
        *study_findings(plan),
        *decision_findings(plan),
        *host_findings(plan, kind),
        *time_findings(plan, times),
        *refused,
    ]
    return CheckReport(
        plan=plan.name,
        plan_hash=loaded.hash,
        path=str(loaded.path),
        fleet_kind=kind,
        rows=declared_rows(plan),
        findings=tuple(sorted(findings, key=lambda each: each.level != "error")),
        bound=bound,
        times=times,
        known_s=known_seconds(times),
        deadline_s=plan.budget.deadline_s,
    )


def require_sound(report: CheckReport) -> None:
    """Raise BadInput with the first error of a report, and how many more there are."""
    if not report.errors:
        return
    first, more = report.errors[0], len(report.errors) - 1
    raise BadInput(
        first.what + (f" ({more} more)" if more else ""),
        where=f"{report.path}#{first.pointer}",
        next_command=first.next_command or command("check", report.path),
    )


def _bound(
    plan: Plan, prices: PriceFile | None, kind: FleetKind, earlier: Sequence[Earlier]
) -> tuple[Bound | None, list[Finding]]:
    try:
        bound = worst_case(plan, prices, kind, earlier)
    except Refused as refused:
        return None, [error("/budget", refused.what)]
    if bound.fits:
        return bound, []
    largest = bound.largest
    most = f"; the largest line is '{largest.what}' with {largest.bound_usd} USD" if largest else ""
    text = f"the worst case of {bound.total_usd} USD is over the ceiling of {bound.ceiling_usd} USD"
    return bound, [error("/budget/ceiling_usd", text + most)]
