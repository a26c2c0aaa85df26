"""Predicted stage times against the deadline, each with its source or 'unknown'."""

from __future__ import annotations

from collections.abc import Iterator

from harness.plan.finding import Finding, error, warning
from harness.plan.plan import Plan
from harness.plan.rates import DEVICES, Device, unit_rate, update_rate
from harness.plan.recipe import Arm
from harness.plan.rules import TOKENS_A_ROW
from harness.prepared import Prepared
from harness.results import Predicted

UNKNOWN = "unknown: never measured for this model on this device"
UNTIMED = "unknown: no rate was measured for this stage"


def predict(plan: Plan, fleet_kind: str, prepared: Prepared | None = None) -> tuple[Predicted, ...]:
    """Every timed stage between admission and the end of the fleet, in running order."""
    device = device_of(plan, fleet_kind)
    before = [_said(stage, None, UNTIMED) for stage in ("push", "preflight", "probe")]
    after = [_said(stage, None, UNTIMED) for stage in ("validate", "preserve", "terminate")]
    train = [_train(plan, arm, device, prepared) for arm in plan.arms]
    again = plan.evaluation.flip_floor
    floor = [f"{again.candidate} in batches of {again.batch}"] if again else []
    evaluate = [_evaluate(plan, model, device) for model in (*plan.models, *floor)]
    return (*before, *train, *evaluate, *_serve(plan, device), *after)


def device_of(plan: Plan, fleet_kind: str) -> Device | None:
    """The device that rates are looked up for; None when it cannot be known before preflight."""
    if fleet_kind == "stack" and plan.hosts.aws is not None:
        devices = {DEVICES.get(each.split(".")[0]) for each in plan.hosts.aws.types}
        return devices.pop() if len(devices) == 1 else None
    local = plan.hosts.local
    return "cpu" if fleet_kind == "local" and local and local.device != "cuda" else None


def _said(what: str, seconds: float | None, source: str) -> Predicted:
    return Predicted(what=what, predicted_s=seconds, source=source, observed_s=None)


def _train(plan: Plan, arm: Arm, device: Device | None, prepared: Prepared | None) -> Predicted:
    what, recipe, size = f"train {arm.name}", plan.recipe, plan.model.parameters
    if recipe.packed is not None and device != "cpu":
        return _said(what, None, UNKNOWN)  # rates on GPUs were measured with padded documents
    rate = update_rate(device, size, recipe.global_batch, arm.workers, arm.exchange.kind)
    if rate is not None:
        return _said(what, recipe.updates * rate.seconds + rate.other_seconds, rate.source)
    token = unit_rate(device, size, "token")
    if token is None or (arm.workers > 1 and device != "cpu"):
        return _said(what, None, UNKNOWN)
    start = unit_rate(device, size, "start")
    if prepared is not None and arm.name in prepared.arms:
        tokens, counted = prepared.arms[arm.name].tokens, "counted in prepared.json"
    else:
        tokens = recipe.updates * recipe.global_batch * plan.data.tasks.rows * TOKENS_A_ROW
        counted = f"arithmetic from about {TOKENS_A_ROW} tokens a row"
    seconds = tokens * token.seconds + (start.seconds if start else 0)
    begins = f"; {start.source}" if start else ""
    return _said(what, seconds, f"{tokens:,} tokens {counted}; {token.source}{begins}")


def _evaluate(plan: Plan, model: str, device: Device | None) -> Predicted:
    size = plan.model.parameters
    case = unit_rate(device, size, "case")
    what = f"evaluate {model}"
    if case is None:
        return _said(what, None, UNKNOWN)
    start = unit_rate(device, size, "start")
    seconds = plan.data.roles.test * case.seconds + (start.seconds if start else 0)
    begins = f"; {start.source}" if start else ""
    return _said(what, seconds, f"{case.source}; retention probes unknown{begins}")


def _serve(plan: Plan, device: Device | None) -> Iterator[Predicted]:
    serving = plan.serving
    for phase in serving.phases if serving else ():
        assert serving is not None
        live = phase.replicas - (phase.fault in ("stopped", "killed"))
        work = {1: "request-one", 2: "request-two"}.get(live, "")
        rate = unit_rate(device, plan.model.parameters, work)
        known = rate is not None and phase.fault in ("none", "stopped") and serving.concurrency == 2
        if rate is None or not known:
            yield _said(f"serve {phase.name}", None, UNKNOWN)
        else:
            requests = serving.requests + serving.warmup_requests
            yield _said(
                f"serve {phase.name}",
                requests * rate.seconds,
                f"{rate.source}; loading the model unknown",
            )


def known_seconds(times: tuple[Predicted, ...]) -> float:
    """The sum of what is known."""
    return sum(each.predicted_s for each in times if each.predicted_s is not None)


def time_findings(plan: Plan, times: tuple[Predicted, ...]) -> Iterator[Finding]:
    """Arms over their own limit, and the whole over its deadline."""
    by_name = {each.what: each for each in times}
    for i, arm in enumerate(plan.arms):
        seconds = by_name[f"train {arm.name}"].predicted_s
        if seconds is not None and seconds > arm.limits.seconds:
            yield error(
                f"/arms/{i}/limits/seconds",
                f"'{arm.name}' would be ended after {arm.limits.seconds} s, and {seconds:.0f} s "
                f"are predicted ({by_name[f'train {arm.name}'].source})",
            )
    known, deadline = known_seconds(times), plan.budget.deadline_s
    if known > deadline:
        yield error(
            "/budget/deadline_s",
            f"the stages whose times are known take {known:.0f} s, longer than the deadline's "
            f"{deadline} s",
        )
    unknown = [each.what for each in times if each.predicted_s is None]
    if known <= deadline < 1.5 * known:
        yield warning(
            "/budget/deadline_s",
            f"{deadline - known:.0f} s are left for stages of unknown length: {', '.join(unknown)}",
        )
