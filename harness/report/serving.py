"""Serving phases: the table, and the curve of latency against throughput."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.display import words
from harness.receipts import ServeReceipt
from harness.report.drawing import DASHES, Drawing, Shape, Stroke, Words
from harness.report.evidence import Evidence
from harness.report.figures import BOTTOM, LEFT, RIGHT, TOP, WIDTH, legend, scale, series
from harness.report.table import Cell, Table, absent, cell, row
from harness.results import PhaseResult

COLUMNS = (
    "phase", "replicas", "load", "answered", "wall time", "requests/s", "tokens/s", "p50", "p95",
    "p99", "first attempts failed", "retries answered", "executed again", "cache hits",
    "same tokens", "outcome",
)  # fmt: skip
NOTE = (
    "Latencies are from the first send (open loop: from when the request was due) to the answer, "
    "failed attempts included, of answered requests; percentiles by linear interpolation between "
    "order statistics (type 7). Warm-ups are left out. 'Same tokens' compares each answer with "
    "those of all other phases to the same case. A phase runs once."
)


def serving(evidence: Evidence) -> Table:
    """Every phase in its declared order, a failed one too."""
    receipt = evidence.receipt(ServeReceipt)
    if evidence.plan.serving is None:
        why = "the plan declares no serving phase"
    elif receipt is None:
        why = "the stage serve did not run"
    else:
        why = receipt.why
    phases = phases_of(evidence)
    if not phases:
        return absent("serving", "Serving", why or "the receipt holds no figures", COLUMNS)
    return Table(
        "serving",
        "Serving",
        COLUMNS,
        tuple(row(phase.name, _cells(phase), detail=_detail(phase)) for phase in phases),
        note=NOTE,
        words=frozenset({"load", "outcome"}),
    )


def phases_of(evidence: Evidence) -> tuple[PhaseResult, ...]:
    """Phases as counted again; as results.json has them where that cannot be done."""
    if evidence.measurements is None:
        return evidence.results.serving
    return evidence.measurements.serving


def load_words(phase: PhaseResult) -> str:
    """'2 at once' or '20 a second'."""
    if phase.arrivals_per_s is not None:
        return f"{phase.arrivals_per_s:g} a second"
    return f"{phase.concurrency} at once"


def _cells(phase: PhaseResult) -> list[Cell]:
    source = f"serving/{phase.name}/"
    share = f"{phase.same_tokens} / {phase.compared}" if phase.compared else "not compared"
    state = {"passed": "pass", "failed": "fail"}.get(phase.outcome, "")
    answered = f"{phase.answered} / {phase.requests}"
    return [
        cell(phase.replicas, source="plan.json"),
        cell(load_words(phase), source="plan.json"),
        cell("not known", source=source)
        if phase.uncounted
        else cell(phase.answered, answered, source=source),
        _optional(phase.wall_s, words.seconds, source),
        _optional(phase.requests_per_s, lambda value: f"{value:.2f}", source),
        _optional(phase.tokens_per_s, words.rate, source),
        *(
            _optional(phase.latency_s.get(name), words.seconds, source)
            for name in ("p50", "p95", "p99")
        ),
        cell(phase.first_failures, source=source),
        cell(phase.retries_answered, source=source),
        cell(phase.duplicates, source=source),
        cell(phase.cache_hits, source=source),
        cell(phase.same_tokens, share, source=source),
        cell(phase.outcome, phase.outcome.upper(), source="receipt serve", state=state),
    ]


def _optional(value: float | None, show: Callable[[float], str], source: str) -> Cell:
    """A figure that a failed phase may lack."""
    if value is None:
        return cell("not measured", source=source)
    return cell(value, show(value), source=source)


def _detail(phase: PhaseResult) -> str:
    """What else is to be said of a phase, in one line."""
    said = []
    if phase.why:
        said.append(phase.why)
    if phase.fault != "none":
        said.append(f"the last replica: {phase.fault}")
    if phase.failures:
        said.append(
            "failed attempts: " + ", ".join(f"{n} {name}" for name, n in phase.failures.items())
        )
    if phase.near_ties:
        said.append(f"{phase.near_ties} answers differ where two tokens tie within rounding")
    if phase.sessions > 1:
        said.append(f"the client was ended and went on {phase.sessions - 1} time(s)")
    return "; ".join(said)


def saturation(phases: Sequence[PhaseResult]) -> Drawing | None:
    """p50 (thin) and p95 of each fault-free phase against its throughput, a line a replica
    count and loop. None unless one of them was measured under two loads.
    """
    curves = _curves(phases)
    if not curves:
        return None
    height = 320
    base, span, across = height - BOTTOM, height - BOTTOM - TOP, WIDTH - LEFT - RIGHT
    shown = [phase for curve in curves.values() for phase in curve]
    _, right, marks = scale(0, max(phase.requests_per_s or 0.0 for phase in shown))
    _, top, ticks = scale(0, max(phase.latency_s["p95"] for phase in shown))
    shapes: list[Shape] = [*legend(list(curves), dashed=True)]
    for tick in ticks:
        y = base - span * tick / top
        shapes.append(Stroke(((LEFT, y), (WIDTH - RIGHT, y)), "line"))
        shapes.append(Words(LEFT - 8, y + 4, f"{tick:g}", "soft", 11, "end"))
    for mark in marks:
        x = LEFT + across * mark / right
        shapes.append(Words(x, base + 18, f"{mark:g}", "soft", 11, "middle"))
    shapes.append(Words(LEFT + across / 2, height - 6, "requests/s", "soft", 11, "middle"))
    shapes.append(Words(WIDTH - RIGHT, 18, "latency p50, p95, s", "soft", 11, "end"))
    for i, curve in enumerate(curves.values()):
        for name, width in (("p50", 1.0), ("p95", 2.0)):
            line = tuple(
                (
                    LEFT + across * (phase.requests_per_s or 0.0) / right,
                    base - span * phase.latency_s[name] / top,
                )
                for phase in curve
            )
            said = ", ".join(
                f"{load_words(p)}: {words.seconds(p.latency_s[name])} at "
                f"{p.requests_per_s or 0.0:.2f} requests/s"
                for p in curve
            )
            dash = DASHES[i % len(DASHES)]
            shapes.append(Stroke(line, series(i), width, dash, f"{name}, {said}"))
            if name == "p95":
                shapes += [
                    Words(x, y - 6, load_words(phase), "soft", 10, "middle")
                    for (x, y), phase in zip(line, curve, strict=True)
                ]
    return Drawing(WIDTH, height, "Latency against throughput, by replicas", tuple(shapes))


def _curves(phases: Sequence[PhaseResult]) -> dict[str, list[PhaseResult]]:
    """Passed phases without a fault by replica count and loop, in rising load; a single point is
    no curve."""
    found: dict[tuple[int, str], list[PhaseResult]] = {}
    for phase in phases:
        measured = phase.outcome == "passed" and phase.requests_per_s and phase.latency_s
        if phase.fault == "none" and measured:
            found.setdefault((phase.replicas, phase.loop), []).append(phase)
    return {
        f"{replicas} replica(s), {loop} loop": sorted(curve, key=_load)
        for (replicas, loop), curve in sorted(found.items())
        if len({_load(phase) for phase in curve}) > 1
    }


def _load(phase: PhaseResult) -> float:
    return phase.arrivals_per_s or float(phase.concurrency or 0)
