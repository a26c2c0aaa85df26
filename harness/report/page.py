"""The pages: templates filled with tables. Every value that is printed is made visible and safe."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.display.sanitize import UNSEEN, name_of
from harness.measuring.rows import ScoreLine
from harness.report.drawing import Drawing, seen, svg
from harness.report.evidence import Evidence
from harness.report.numbers import REPORTER_VERSION, Numbers
from harness.report.recount import contrasts
from harness.report.table import Table

TEMPLATES = Path(__file__).parent / "templates"
LONG_CHARACTERS = 800
"""Answers longer than this are folded."""


def index_page(evidence: Evidence, found: Numbers, figures: Mapping[str, Drawing]) -> bytes:
    """index.html. `figures` are set into it as SVG."""
    style = _styles("colours.css", "figure.css", "page.css")
    page = _environment().get_template("index.html")
    return page.render(
        evidence=evidence,
        plan=evidence.plan,
        closing=evidence.closing,
        found=found,
        tables=found.tables,
        places={case.id: number for number, case in enumerate(evidence.cases, start=1)},
        figures={name: Markup(svg(figure)) for name, figure in figures.items()},
        style=Markup(style),
        policy=policy(style),
        reporter=REPORTER_VERSION,
    ).encode()


def answers_page(evidence: Evidence) -> bytes:
    """answers.html: every prompt and every answer, as text."""
    style = _styles("colours.css", "page.css", "answers.css")
    script = _text("answers.js")
    page = _environment().get_template("answers.html")
    return page.render(
        evidence=evidence,
        plan=evidence.plan,
        models=evidence.models,
        families=list(dict.fromkeys(case.family for case in evidence.cases)),
        wordings=sorted({case.wording for case in evidence.cases}),
        held_out=evidence.plan.data.tasks.held_out,
        contrasts=contrasts(evidence),
        style=Markup(style),
        script=Markup(script),
        policy=policy(style, script),
    ).encode()


def policy(style: str, script: str | None = None) -> str:
    """A Content-Security-Policy that allows these two texts and nothing else."""
    allowed = f"script-src '{_source(script)}'; " if script is not None else ""
    return (
        f"default-src 'none'; {allowed}style-src '{_source(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def hostile(text: str) -> Markup:
    """A model's words as HTML: what cannot be seen stands as a marked escape, tags as text."""
    parts: list[Markup] = []
    position = 0
    for match in UNSEEN.finditer(text):
        parts.append(escape(text[position : match.start()]))
        parts.append(Markup('<b class="esc">{}</b>').format(name_of(match[0])))
        position = match.end()
    parts.append(escape(text[position:]))
    return Markup("").join(parts)


def visible(value: Any) -> Any:
    """What every `{{ }}` prints: text without anything that cannot be seen."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return seen(value)
    return value


def minus(text: str) -> str:
    """A hyphen before a number as a minus sign (not in 1e-44)."""
    return re.sub(r"(?<![\w.-])-(?=\d)", "\N{MINUS SIGN}", text)


def breaks(text: str) -> Markup:
    """A path that may break after its slashes."""
    return escape(seen(text)).replace("/", Markup("/<wbr>"))


def which(answers: Mapping[str, ScoreLine], field: str, wanted: bool) -> list[str]:
    """The models whose answer has this value of a field."""
    return [name for name, answer in answers.items() if getattr(answer, field) is wanted]


def numeric(table: Table, column: int) -> bool:
    """Whether a column of a table holds figures; column 0 is the header."""
    return column > 0 and table.columns[column] not in table.words


def _styles(*names: str) -> str:
    return "".join(_text(name) for name in names)


@cache
def _text(name: str) -> str:
    return (TEMPLATES / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(hostile=hostile, minus=minus, breaks=breaks, which=which)
    made.globals.update(numeric=numeric, long_characters=LONG_CHARACTERS)
    return made
