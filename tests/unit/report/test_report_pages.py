"""Pages: hostile text stays text, nothing is fetched, and what is accessible stays so."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.display.sanitize import UNSEEN
from harness.report import Evidence, ReportFiles, build_report, load_evidence
from harness.report.drawing import Box, Drawing, Words, svg
from harness.report.page import hostile, minus
from harness.report.raster import COLOURS
from tests.unit.report.make_evidence import write_evidence

FIGURES = ("accuracy", "bytes", "cost", "losses", "retention", "time")
PAGES = ("index.html", "answers.html")
TAGS = {
    "a", "article", "b", "body", "br", "button", "code", "details", "div", "figcaption", "figure",
    "form", "h1", "h2", "h3", "head", "header", "html", "input", "kbd", "label", "li", "main",
    "meta", "nav", "optgroup", "option", "p", "polyline", "pre", "rect", "script", "section",
    "select", "span", "strong", "style", "summary", "svg", "table", "tbody", "td", "text", "th",
    "thead", "title", "tr", "ul", "wbr",
}  # fmt: skip


class _Seen(HTMLParser):
    """What a browser would build, as far as these tests ask."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._inside = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        if self._inside == "style":
            self.styles.append(data)

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, report: ReportFiles) -> bytes:
    """Each page in turn."""
    return report.files[request.param]


def test_only_our_own_tags_and_scripts_are_there(page: bytes) -> None:
    seen = _Seen(page)
    assert {tag for tag, _ in seen.tags} <= TAGS
    assert len([tag for tag, _ in seen.tags if tag == "script"]) <= 1
    assert "owned" not in "".join(seen.scripts)


def test_no_attribute_runs_or_fetches_anything(page: bytes) -> None:
    seen = _Seen(page)
    for _, attributes in seen.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert "src" not in attributes
        href = attributes.get("href")
        assert href is None or re.fullmatch(r"(#|index|answers|report|figures/)[\w.#=%-]*", href), (
            href
        )


def test_the_policy_allows_exactly_the_script_and_style_of_the_page(page: bytes) -> None:
    seen = _Seen(page)
    (policy,) = [a["content"] for _, a in seen.tags if "http-equiv" in a]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind, texts in (("script", seen.scripts), ("style", seen.styles)):
        found = re.findall(rf"{kind}-src '([^']*)'", policy)
        digest = base64.b64encode(hashlib.sha256("".join(texts).encode()).digest()).decode()
        assert found == ([f"sha256-{digest}"] if texts else [])


def test_nothing_that_cannot_be_seen_is_in_the_bytes(page: bytes) -> None:
    text = page.decode()
    assert not UNSEEN.search(text)
    assert "\r" not in text


def test_hostile_answers_are_shown(report: ReportFiles) -> None:
    text = report.files["answers.html"].decode()
    assert "&lt;/script&gt;&lt;script&gt;window.owned = 1&lt;/script&gt;" in text
    assert '<b class="esc">U+202E</b>' in text
    assert '<b class="esc">U+001B</b>[31m' in text
    assert '<b class="esc">U+0000</b>' in text
    assert "\\ud800 lone" in text
    assert "32768 characters, folded" in text
    assert "{{ 7 * 7 }}" in text


def test_a_leading_newline_is_kept(report: ReportFiles) -> None:
    """HTML drops one newline right after <pre>."""
    assert b'<pre class="wrong">\n\n\n  leading newlines' in report.files["answers.html"]


@pytest.mark.parametrize("name", PAGES)
def test_headings_do_not_skip_a_level(report: ReportFiles, name: str) -> None:
    levels = [int(t[1]) for t, _ in _Seen(report.files[name]).tags if re.fullmatch(r"h[1-6]", t)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_every_header_cell_has_a_scope_and_every_id_is_its_own(page: bytes) -> None:
    seen = _Seen(page)
    assert all(a.get("scope") in ("col", "row") for tag, a in seen.tags if tag == "th")
    ids = seen.attributes("id")
    assert len(ids) == len(set(ids))
    assert all(target[1:] in ids for target in seen.attributes("href") if target.startswith("#"))
    assert all(label in ids for label in seen.attributes("aria-labelledby"))


def test_pass_and_fail_stand_in_words(report: ReportFiles) -> None:
    text = report.files["index.html"].decode()
    assert '<span class="pass">pass</span>' in text
    assert '<span class="fail">fail</span>' in text
    assert "99.5 % one-sided" in text
    assert "(exploratory)" in text
    assert "not an invoice" in text


def test_hostile_words_of_a_plan_are_text(copy: Path) -> None:
    plan = (copy / "plan.json").read_text()
    hostile_text = '\\u202e<script>1</script>\\" onload=\\"x'
    (copy / "plan.json").write_text(plan.replace("The whole process", hostile_text))
    page = build_report(load_evidence(copy), raster=False).files["index.html"]
    assert b"[U+202E]&lt;script&gt;" in page
    assert not _Seen(page).attributes("onload")


def test_many_cases_stay_one_page(tmp_path: Path) -> None:
    closing = write_evidence(tmp_path / "archive", cases=320)
    page = build_report(load_evidence(tmp_path / "archive", closing), raster=False).files
    assert page["answers.html"].count(b"<article ") == 320
    assert b"var PAGE = 50" in page["answers.html"]


@given(st.text())
def test_any_text_becomes_only_text(text: str) -> None:
    made = str(hostile(text))
    left = re.sub(r'<b class="esc">U\+[0-9A-F]{4,6}</b>', "", made)
    assert "<" not in left
    assert ">" not in left
    assert not UNSEEN.search(made)
    made.encode("utf-8")


def test_minus_signs_are_only_set_before_numbers() -> None:
    assert minus("-0.98 to -2.10 points, 1e-44, two-workers, a-1") == (
        "\N{MINUS SIGN}0.98 to \N{MINUS SIGN}2.10 points, 1e-44, two-workers, a-1"
    )


def test_svg_files_are_whole_and_alone(report: ReportFiles) -> None:
    figures = {n: data for n, data in report.files.items() if n.endswith(".svg")}
    assert set(figures) == {f"figures/{n}.svg" for n in FIGURES}
    for data in figures.values():
        ElementTree.fromstring(data)
        assert b"prefers-color-scheme: dark" in data
        assert b"href" not in data


def test_hostile_names_in_a_figure_are_text() -> None:
    bad = '</text><script>"\u202e\x00'
    shapes = (Words(1, 2, bad), Box(0, 0, 1, 1, "s0", bad))
    made = svg(Drawing(10, 10, bad, shapes))
    names = {element.tag.partition("}")[2] for element in ElementTree.fromstring(made).iter()}
    assert names == {"svg", "title", "text", "rect"}


def test_raster_colours_are_the_light_ones_of_the_page(report: ReportFiles) -> None:
    light = report.files["index.html"].decode().partition("@media (prefers-color-scheme: dark)")[0]
    found = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", light))
    assert {name: found[name] for name in COLOURS} == COLOURS


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast_enough(report: ReportFiles, dark: bool) -> None:
    """WCAG 2 asks for 4.5:1 of text."""
    light, _, rest = (
        report.files["index.html"].decode().partition("@media (prefers-color-scheme: dark)")
    )
    found = dict(
        re.findall(r"--([\w-]+): (#[0-9a-f]{6})", rest.partition("}\n}")[0] if dark else light)
    )
    for name in ("ink", "soft", "link", "pass", "fail"):
        for back in ("paper", "faint"):
            assert _contrast(found[name], found[back]) >= 4.5, (name, back)
    assert _contrast(found["mark"], found["mark-back"]) >= 4.5


def _contrast(one: str, two: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_names_of_models_fit_the_filter(evidence: Evidence, report: ReportFiles) -> None:
    seen = _Seen(report.files["answers.html"])
    rows = [attributes for tag, attributes in seen.tags if tag == "article"]
    for case, attributes in zip(evidence.cases, rows, strict=True):
        right = [name for name, answer in case.answers.items() if answer.correct]
        assert (attributes["data-right"] or "").split() == right
