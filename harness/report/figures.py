"""The figures: accuracy by family and model, loss by update, time by arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from harness.display import words
from harness.report.drawing import DASHES, SERIES, Box, Drawing, Shape, Stroke, Words, svg
from harness.report.evidence import Evidence, LossPoint
from harness.report.recount import families, tally
from harness.report.running import arms_of
from harness.results import ArmResult, Tally
from harness.statistics.normal import z_two_sided

TEMPLATES = Path(__file__).parent / "templates"
WIDTH = 720
LEFT, RIGHT, TOP, BOTTOM = 56.0, 16.0, 40.0, 40.0
_PARTS = ("start-up and load", "active", "checkpoint", "rest of the process")
_PART_COLOURS = ("s0", "s1", "s2", "s7")


def drawings(evidence: Evidence) -> dict[str, Drawing]:
    """Every figure that the evidence has data for, by name."""
    made = {
        "accuracy": accuracy(evidence),
        "losses": losses(evidence),
        "time": time_by_arm(arms_of(evidence)),
    }
    return {name: drawing for name, drawing in made.items() if drawing is not None}


def standalone(drawing: Drawing) -> bytes:
    """An SVG file with its own colours, light and dark."""
    return svg(drawing, style=_style()).encode()


@cache
def _style() -> str:
    return "".join((TEMPLATES / name).read_text("utf-8") for name in ("colours.css", "figure.css"))


def series(index: int) -> str:
    """The colour of the n-th series."""
    return f"s{index % SERIES}"


def accuracy(evidence: Evidence) -> Drawing | None:
    """Grouped bars with 95 % Wilson intervals."""
    models, names = evidence.models, families(evidence)
    groups: dict[str, dict[str, Tally]] = {}
    for name in ("all", *names):
        cases = [c for c in evidence.cases if name in ("all", c.family)]
        groups[name] = {m: right for m in models if (right := tally(cases, m))}
    if not any(groups.values()):
        return None
    height = 320
    base, span = height - BOTTOM, height - BOTTOM - TOP
    shapes: list[Shape] = [*legend(models)]
    for percent in range(0, 101, 20):
        y = base - span * percent / 100
        shapes.append(Stroke(((LEFT, y), (WIDTH - RIGHT, y)), "line"))
        shapes.append(Words(LEFT - 8, y + 4, f"{percent} %", "soft", 11, "end"))
    slot = (WIDTH - LEFT - RIGHT) / len(groups)
    bar = min(34.0, slot * 0.8 / len(models))
    for g, (group, found) in enumerate(groups.items()):
        middle = LEFT + slot * (g + 0.5)
        shapes.append(Words(middle, base + 20, group, "ink", 12, "middle"))
        for m, model in enumerate(models):
            if model in found:
                x = middle + (m - len(models) / 2) * bar
                shapes += _bar(x, bar, base, span, series(m), f"{model}, {group}", found[model])
    return Drawing(WIDTH, height, "Accuracy by family and model", tuple(shapes))


def _bar(
    x: float, width: float, base: float, span: float, colour: str, name: str, found: Tally
) -> list[Shape]:
    share = found.correct / found.cases
    low, high = wilson(found.correct, found.cases)
    interval = f"{words.percent(low)} to {words.percent(high)}"
    title = f"{name}: {found.correct} / {found.cases}, {words.percent(share)} ({interval})"
    middle, cap = x + width / 2, min(4.0, width / 5)
    top, bottom = base - span * high, base - span * low
    shapes: list[Shape] = [
        Box(x + 1, base - span * share, width - 2, span * share, colour, title),
        Stroke(((middle, top), (middle, bottom)), "ink", 1.2),
        Stroke(((middle - cap, top), (middle + cap, top)), "ink", 1.2),
        Stroke(((middle - cap, bottom), (middle + cap, bottom)), "ink", 1.2),
    ]
    if width >= 16:
        shapes.append(Words(middle, top - 5, f"{100 * share:.0f}", "soft", 10, "middle"))
    return shapes


def wilson(correct: int, cases: int) -> tuple[float, float]:
    """95 % Wilson score interval of a share (Wilson, JASA 22 (1927) 209-212)."""
    z = z_two_sided(0.95)
    centre = (2 * correct + z * z) / (2 * (cases + z * z))
    half = z * math.sqrt(z * z + 4 * correct * (cases - correct) / cases) / (2 * (cases + z * z))
    share = correct / cases
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def losses(evidence: Evidence) -> Drawing | None:
    """One line an arm."""
    found = {arm: points for arm, points in evidence.losses.items() if points}
    if not found:
        return None
    height = 320
    base, span, across = height - BOTTOM, height - BOTTOM - TOP, WIDTH - LEFT - RIGHT
    values = [point.loss for points in found.values() for point in points]
    low, high, ticks = scale(min(values), max(values))
    last = max(point.update for points in found.values() for point in points)
    marks = [mark for mark in scale(0, last)[2] if mark <= last]

    def place(point: LossPoint) -> tuple[float, float]:
        y = base - span * (point.loss - low) / (high - low)
        return LEFT + across * point.update / last, y

    names = tuple(found)
    shapes: list[Shape] = [*legend(names, offset=1, dashed=True)]
    for tick in ticks:
        y = base - span * (tick - low) / (high - low)
        shapes.append(Stroke(((LEFT, y), (WIDTH - RIGHT, y)), "line"))
        shapes.append(Words(LEFT - 8, y + 4, f"{tick:g}", "soft", 11, "end"))
    for mark in marks:
        shapes.append(
            Words(LEFT + across * mark / last, base + 18, f"{mark:g}", "soft", 11, "middle")
        )
    shapes.append(Words(LEFT + across / 2, height - 6, "update", "soft", 11, "middle"))
    shapes.append(Words(WIDTH - RIGHT, 18, "loss, nats", "soft", 11, "end"))
    for i, (arm, points) in enumerate(found.items()):
        title = f"{arm}: {words.loss(points[0].loss)} to {words.loss(points[-1].loss)}"
        line = tuple(place(point) for point in points)
        shapes.append(Stroke(line, series(i + 1), 1.8, DASHES[i % len(DASHES)], title))
    return Drawing(WIDTH, height, "Training loss by arm, in nats", tuple(shapes))


def time_by_arm(arms: Sequence[ArmResult]) -> Drawing | None:
    """One bar an arm: what the slowest rank's process spent."""
    if not arms:
        return None
    row = 44
    height = int(TOP + row * len(arms) + BOTTOM)
    longest = max(arm.timers.process for arm in arms)
    left, base = 130.0, height - BOTTOM
    _, right, marks = scale(0, longest)
    across = WIDTH - left - 90
    shapes: list[Shape] = [*legend(_PARTS, colours=_PART_COLOURS)]
    for mark in marks:
        x = left + across * mark / right
        shapes.append(Stroke(((x, TOP), (x, base)), "line"))
        shapes.append(Words(x, base + 18, f"{mark:g}", "soft", 11, "middle"))
    shapes.append(Words(left + across / 2, height - 6, "seconds", "soft", 11, "middle"))
    for i, arm in enumerate(arms):
        y, x = TOP + row * i + 9, left
        shapes.append(Words(left - 10, y + 18, arm.name[:18], "ink", 12, "end"))
        for part, colour, seconds in zip(_PARTS, _PART_COLOURS, _split(arm), strict=True):
            width = across * seconds / right
            title = f"{arm.name}, {part}: {words.seconds(seconds)}"
            shapes.append(Box(x, y, width, row - 18, colour, title))
            x += width
        shapes.append(Words(x + 8, y + 18, words.seconds(arm.timers.process), "ink", 12))
    return Drawing(WIDTH, height, "Time by arm, in seconds", tuple(shapes))


def _split(arm: ArmResult) -> tuple[float, float, float, float]:
    """The process's seconds in four parts; what no timer tells is in the last."""
    t = arm.timers
    load, active = t.load or 0.0, t.active or 0.0
    checkpoint = max(0.0, (t.active_plus_checkpoint or active) - active)
    return load, active, checkpoint, max(0.0, t.process - load - active - checkpoint)


def legend(
    names: Sequence[str],
    *,
    offset: int = 0,
    colours: Sequence[str] = (),
    dashed: bool = False,
) -> list[Shape]:
    """Names with their colours (and dashes), in one line at the top."""
    shapes: list[Shape] = []
    x = LEFT
    for i, name in enumerate(names):
        colour = colours[i] if colours else series(i + offset)
        if dashed:
            shapes.append(Stroke(((x, 14), (x + 22, 14)), colour, 2.2, DASHES[i % len(DASHES)]))
        else:
            shapes.append(Box(x + 8, 8, 12, 12, colour))
        shapes.append(Words(x + 28, 18, name, "ink", 12))
        x += 44 + 7.2 * len(name)
    return shapes


def scale(low: float, high: float) -> tuple[float, float, list[float]]:
    """A round axis around two values: (start, end, ticks), four to eight ticks."""
    if high <= low:
        high = low + max(abs(low) * 0.1, 1e-6)
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return first * step, last * step, [round(i * step, 12) for i in range(first, last + 1)]
