"""PNG and PDF of a drawing, by matplotlib. The same bytes only in the pinned environment."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from harness.report.drawing import Box, Drawing, Stroke, Words, seen

PIXELS_AN_INCH = 100
DPI = 200
COLOURS = {
    "paper": "#fdfdfc", "ink": "#1d1f21", "soft": "#5b6167", "line": "#d9dcde", "s0": "#8b9096",
    "s1": "#1f6fb2", "s2": "#c2571a", "s3": "#2f8f5b", "s4": "#8a4fa3", "s5": "#a07a00",
    "s6": "#b23a6b", "s7": "#3f8a99",
}  # fmt: skip
"""The light colours of templates/colours.css (a test compares them)."""

_ALIGN = {"start": "left", "middle": "center", "end": "right"}
_SKIP = ("backend", "interactive", "toolbar", "timezone")


def png(drawing: Drawing) -> bytes:
    """The drawing as PNG, twice its size in pixels, without a date or program name."""
    with _settings():
        out = io.BytesIO()
        _figure(drawing).savefig(out, format="png", dpi=DPI, metadata={"Software": None})
        return out.getvalue()


def pdf(drawing: Drawing) -> bytes:
    """The drawing as PDF, fonts embedded, without dates."""
    with _settings():
        out = io.BytesIO()
        nothing = dict.fromkeys(("Creator", "Producer", "CreationDate", "ModDate"))
        _figure(drawing).savefig(out, format="pdf", metadata=nothing)
        return out.getvalue()


def _settings() -> Any:
    """matplotlib's own defaults, whatever the user's settings file says."""
    settings: dict[Any, Any] = {
        name: value
        for name, value in matplotlib.rcParamsDefault.items()
        if not name.startswith(_SKIP)
    }
    settings.update({"font.family": "DejaVu Sans", "pdf.fonttype": 42, "text.parse_math": False})
    return matplotlib.rc_context(settings)


def _figure(drawing: Drawing) -> Figure:
    size = (drawing.width / PIXELS_AN_INCH, drawing.height / PIXELS_AN_INCH)
    figure = Figure(figsize=size, dpi=DPI, facecolor=COLOURS["paper"])
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    axes.axis("off")
    point = 72 / PIXELS_AN_INCH
    for order, shape in enumerate(drawing.shapes):
        if isinstance(shape, Box):
            place = (shape.x, shape.y)
            box = Rectangle(place, shape.width, shape.height, color=COLOURS[shape.colour], lw=0)
            box.set_zorder(order)
            axes.add_patch(box)
        elif isinstance(shape, Stroke):
            xs, ys = [x for x, _ in shape.points], [y for _, y in shape.points]
            line = Line2D(xs, ys, color=COLOURS[shape.colour], lw=shape.width * point, zorder=order)
            if shape.dash:
                line.set_dashes([length / shape.width for length in shape.dash])
            axes.add_line(line)
        elif isinstance(shape, Words):
            axes.text(
                shape.x, shape.y, seen(shape.text), color=COLOURS[shape.colour],
                fontsize=shape.size * point, ha=_ALIGN[shape.anchor], va="baseline", zorder=order,
            )  # fmt: skip
    return figure
