"""More figures: retention with intervals, bytes sent by arm, the cost bound by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from harness.display import words
from harness.plan.plan import REFERENCE
from harness.report.drawing import Box, Drawing, Shape, Stroke, Words
from harness.report.evidence import Evidence
from harness.report.figures import BOTTOM, TOP, WIDTH, legend, scale, series
from harness.report.learning import retention_change
from harness.report.running import arms_of

LEFT, RIGHT = 190.0, 110.0
ROW = 34

Form = Callable[[float], str]


def retention(evidence: Evidence) -> Drawing | None:
    """Change of the mean loss from the reference, a row a probe set and arm, 95 % intervals."""
    found = [
        (probe, m, model, change)
        for probe in (p.name for p in evidence.plan.data.retention)
        for m, model in enumerate(evidence.models)
        if model != REFERENCE and (change := retention_change(evidence, probe, model)) is not None
    ]
    if not found:
        return None
    low, high, marks = scale(
        min(0.0, *(c.lower for *_, c in found)), max(0.0, *(c.upper for *_, c in found))
    )
    height = int(TOP + ROW * len(found) + BOTTOM)
    base, across = height - BOTTOM, WIDTH - LEFT - RIGHT

    def at(value: float) -> float:
        return LEFT + across * (value - low) / (high - low)

    arms = [model for model in evidence.models if model != REFERENCE]
    shapes: list[Shape] = [*legend(arms, offset=1), *_marks(marks, at, base, _signed)]
    shapes.append(Stroke(((at(0.0), TOP), (at(0.0), base)), "ink", 1.2))
    shapes.append(
        Words(LEFT + across / 2, height - 6, "change of loss, nats", "soft", 11, "middle")
    )
    for i, (probe, m, model, change) in enumerate(found):
        y = TOP + ROW * (i + 0.5)
        title = f"{model}, {probe}: {change.mean:+.6f} ({change.lower:+.6f} to {change.upper:+.6f})"
        shapes.append(Words(LEFT - 12, y + 4, f"{probe}, {model}"[:26], "ink", 12, "end"))
        shapes.append(
            Stroke(((at(change.lower), y), (at(change.upper), y)), series(m), 2, (), title)
        )
        for end in (change.lower, change.upper):
            shapes.append(Stroke(((at(end), y - 5), (at(end), y + 5)), series(m), 2))
        shapes.append(Box(at(change.mean) - 4, y - 4, 8, 8, series(m), title))
        shapes.append(Words(WIDTH - RIGHT + 10, y + 4, f"{change.mean:+.6f}", "ink", 12))
    return Drawing(WIDTH, height, "Change of retention loss by arm, in nats", tuple(shapes))


def sent_bytes(evidence: Evidence) -> Drawing | None:
    """One bar an arm: bytes transmitted by all its hosts. Received ones are the same data again."""
    rows = [
        (arm.name, float(arm.sent_bytes), words.decimal_bytes(arm.sent_bytes))
        for arm in arms_of(evidence)
    ]
    if not any(value for _, value, _ in rows):
        return None
    return _bars(rows, "Bytes sent by arm", "transmitted by all hosts", "s1", _size)


def cost(evidence: Evidence) -> Drawing | None:
    """One bar a line of the bound, in US dollars."""
    if evidence.closing is None:
        return None
    found = evidence.closing.resources
    rows = [(line.what, line.bound_usd) for line in found.lines]
    rows += [("allowance", found.allowance_usd)]
    paid = [(what, float(Decimal(usd)), f"${usd}") for what, usd in rows if Decimal(usd) > 0]
    return (
        _bars(paid, "Cost bound by line, in US dollars", "US dollars", "s2", "{:.3g}".format)
        if paid
        else None
    )


def _bars(
    rows: Sequence[tuple[str, float, str]], label: str, unit: str, colour: str, form: Form
) -> Drawing:
    height = int(TOP / 2 + ROW * len(rows) + BOTTOM)
    base, across = height - BOTTOM, WIDTH - LEFT - RIGHT
    _, right, marks = scale(0.0, max(value for _, value, _ in rows))

    def at(value: float) -> float:
        return LEFT + across * value / right

    shapes: list[Shape] = [*_marks(marks, at, base, form, top=TOP / 2)]
    shapes.append(Words(LEFT + across / 2, height - 6, unit, "soft", 11, "middle"))
    for i, (name, value, text) in enumerate(rows):
        y = TOP / 2 + ROW * i + 6
        shapes.append(Words(LEFT - 12, y + 15, name[:26], "ink", 12, "end"))
        shapes.append(Box(LEFT, y, at(value) - LEFT, ROW - 12, colour, f"{name}: {text}"))
        shapes.append(Words(at(value) + 8, y + 15, text, "ink", 12))
    return Drawing(WIDTH, height, label, tuple(shapes))


def _marks(
    marks: Sequence[float], at: Callable[[float], float], base: float, form: Form, top: float = TOP
) -> list[Shape]:
    shapes: list[Shape] = []
    for mark in marks:
        shapes.append(Stroke(((at(mark), top), (at(mark), base)), "line"))
        shapes.append(Words(at(mark), base + 18, form(mark), "soft", 11, "middle"))
    return shapes


def _signed(value: float) -> str:
    return f"{value:+g}" if value else "0"


def _size(value: float) -> str:
    number, _, unit = words.decimal_bytes(round(value)).partition(" ")
    return f"{float(number):g} {unit}"
