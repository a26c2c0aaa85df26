"""A small drawing: boxes, lines and words in pixels. Colours are roles, not values.

Charts are laid out once as a `Drawing`; one writer makes SVG of it, another PNG and PDF.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from harness.display.sanitize import UNSEEN, name_of

Colour = str
"""'ink', 'soft', 'line', or 's0' to 's7' for series."""
SERIES = 8
DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3))


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle; `title` is what hovering says."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour
    title: str = ""


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    colour: Colour
    width: float = 1.0
    dash: tuple[int, ...] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Text with its baseline at y."""

    x: float
    y: float
    text: str
    colour: Colour = "ink"
    size: float = 12.0
    anchor: Literal["start", "middle", "end"] = "start"


Shape = Box | Stroke | Words


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes from back to front, and what the picture says in words."""

    width: int
    height: int
    label: str
    shapes: tuple[Shape, ...]


def svg(drawing: Drawing, *, style: str = "") -> str:
    """The drawing as SVG. Without `style` it takes the page's; with it, it stands alone."""
    size = f"{drawing.width} {drawing.height}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" '
        f"aria-label={_attribute(drawing.label)}"
    )
    if style:
        head += f' width="{drawing.width}" height="{drawing.height}"'
    body = [f"{head}>", f"<title>{_text(drawing.label)}</title>"]
    if style:
        body.append(f"<style>{style}</style>")
        body.append(f'<rect width="{drawing.width}" height="{drawing.height}" class="f-paper"/>')
    body += [_shape(shape) for shape in drawing.shapes]
    return "\n".join([*body, "</svg>", ""])


def _shape(shape: Shape) -> str:
    if isinstance(shape, Words):
        return (
            f'<text x="{_n(shape.x)}" y="{_n(shape.y)}" class="f-{shape.colour} '
            f'a-{shape.anchor}" font-size="{_n(shape.size)}">{_text(shape.text)}</text>'
        )
    title = f"<title>{_text(shape.title)}</title>" if shape.title else ""
    if isinstance(shape, Box):
        return (
            f'<rect x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" '
            f'height="{_n(shape.height)}" class="f-{shape.colour}">{title}</rect>'
        )
    points = " ".join(f"{_n(x)},{_n(y)}" for x, y in shape.points)
    dash = f' stroke-dasharray="{" ".join(map(str, shape.dash))}"' if shape.dash else ""
    return (
        f'<polyline points="{points}" class="k-{shape.colour}" '
        f'stroke-width="{_n(shape.width)}"{dash}>{title}</polyline>'
    )


def _n(value: float) -> str:
    """Two decimals at most, no negative zero."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def seen(text: str) -> str:
    """Text without characters that cannot be seen."""
    return UNSEEN.sub(lambda match: f"[{name_of(match[0])}]", text)


def _text(text: str) -> str:
    return escape(seen(text))


def _attribute(text: str) -> str:
    return quoteattr(seen(text))
