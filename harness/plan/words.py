"""Decisions and other declared facts in plain words."""

from __future__ import annotations

from harness.plan.decisions import Decision, Scope
from harness.plan.parent import PARENT
from harness.plan.plan import REFERENCE, Plan
from harness.plan.recipe import Arm, LocalWindows, PowerSGD
from harness.statistics.normal import upper_tail

MEASURES = {
    "accuracy": "the share of right answers of {candidate}",
    "accuracy-difference": "the share of right answers of {candidate} minus that of {reference}",
    "mcnemar": "the exact one-sided McNemar p that {candidate} is better than {reference}",
    "retention-difference": "the mean loss of {candidate} minus that of {reference} on the probes "
    "'{probes}', in nats,",
    "valid-json-share": "the share of valid JSON answers of {candidate}",
    "speed-ratio": "how many times faster {candidate} is than {reference} by the timer '{timer}'",
    "cost-ratio": "the allocated seconds of {candidate} divided by those of {reference} by the "
    "timer '{timer}'",
    "bytes-ratio": "the bytes that {candidate} sends divided by those of {reference}",
    "parameter-agreement": "the agreement of the ranks of {candidate} (1: all the same)",
    "parameter-distance": "the relative L2 distance of the parameters of {candidate} from those of "
    "{reference}",
    "serving-throughput-ratio": "the requests a second of {candidate} divided by those of "
    "{reference}",
    "serving-token-agreement": "the share of requests that {candidate} answers with the same "
    "tokens as the other phases",
}


def z_label(z: float) -> str:
    """A z with its one-sided coverage: 2.576 is '99.5 % one-sided'."""
    return f"z {z:g}, {100 * (1 - upper_tail(z)):.4g} % one-sided"


def decision_words(decision: Decision) -> str:
    """What must hold for the decision to pass, in one sentence without its period."""
    measure = MEASURES[decision.statistic].format(
        candidate=_who(decision.candidate),
        reference=_who(decision.reference or "nothing"),
        probes=decision.probes,
        timer=decision.timer,
    )
    if decision.bound in ("lower", "upper"):
        assert decision.z is not None
        side = f"the {decision.bound} bound ({z_label(decision.z)}) of {measure}"
        text = f"{side} {'is above' if decision.bound == 'lower' else 'stays below'}"
    else:
        text = f"{measure} is {decision.bound.replace('-', ' ')}"
    text = f"{text} {_margin(decision)}{_scope(decision.scope)}"
    return f"{text} (exploratory: shown, decides nothing)" if decision.exploratory else text


def _who(name: str) -> str:
    if name == PARENT:
        return "the parent"
    return "the untrained model" if name == REFERENCE else f"'{name}'"


def _margin(decision: Decision) -> str:
    points = decision.statistic == "accuracy-difference" and decision.margin
    shown = f" ({100 * decision.margin:+g} points)" if points else ""
    return f"{decision.margin:g}{shown}"


def _scope(scope: Scope | None) -> str:
    if scope is None:
        return ""
    parts = []
    if scope.families is not None:
        parts.append(f"families {', '.join(scope.families)}")
    if scope.wordings is not None:
        parts.append(f"{scope.wordings} wordings")
    return f", over {' and '.join(parts)} only" if parts else ""


def exchange_words(arm: Arm) -> str:
    """The exchange of an arm, such as 'powersgd rank 32, 8 dense updates first'."""
    exchange = arm.exchange
    if isinstance(exchange, LocalWindows):
        return (
            f"local windows of {exchange.window} updates, outer lr {exchange.outer_lr:g}, "
            f"momentum {exchange.outer_momentum:g}"
        )
    if not isinstance(exchange, PowerSGD):
        return exchange.kind
    feedback = "error feedback" if exchange.error_feedback else "no error feedback"
    dense = "BF16 dense" if exchange.dense_precision == "bf16" else "dense"
    warm = exchange.warmup
    return (
        f"powersgd rank {exchange.rank}, {feedback}, {exchange.dense_updates} {dense} updates first"
        + (f", then {warm.updates} of rank {warm.rank}" if warm else "")
        + (", BF16 factors" if exchange.factors == "bf16" else "")
    )


def arm_words(plan: Plan, arm: Arm) -> str:
    """Workers, exchange, corpus and batch of an arm."""
    unit = " tokens" if plan.recipe.packed else ""
    chosen = f"microbatch {arm.microbatch}{unit}"
    micro = chosen if arm.microbatch else "microbatch chosen by probe"
    start = "starts from the parent, " if arm.start == "parent" else ""
    return (
        f"{start}{arm.workers} worker(s), exchange {exchange_words(arm)}, corpus {arm.corpus}, "
        f"{plan.recipe.global_batch // arm.workers} documents a worker and update, {micro}, "
        f"keeps {arm.preserve}, at most {arm.limits.seconds:,} s and {arm.limits.traffic_gb:g} GB"
    )
