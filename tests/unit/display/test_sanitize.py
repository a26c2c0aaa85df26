"""Whatever a model wrote, a terminal gets only what can be seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.display.sanitize import UNSEEN, clean, fit, name_of


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("red \x1b[31mtext\x1b[0m", "red text"),
        ("title \x1b]0;owned\x07after", "title after"),
        ("title \x1b]0;owned\x1b\\after", "title after"),
        ("8-bit \x9b2Jclear \x9d0;x\x9cend", "8-bit clear end"),
        ("open \x1b]52;c;payload", "open "),
        ("dcs \x1bPq#0\x1b\\end", "dcs end"),
        ("two \x1bc\x1b(Bend", "two end"),
        ("bell\x07 nul\x00 del\x7f back\x08", "bell nul del back"),
        ("safe \u202egnp.exe\u202c \u2066x\u2069", "safe gnp.exe x"),
        ("zero\u200bwidth \ufeffmark \U000e0041tag", "zero\\u200bwidth \\ufeffmark \\U000e0041tag"),
        ("lone \ud800", "lone \\ud800"),
        ("line\nline\r\nline\ttab", "line line line tab"),
        ("caf\u00e9 \u4e2d\u6587", "caf\u00e9 \u4e2d\u6587"),
    ],
)
def test_control_codes_are_stripped_and_the_unseen_is_escaped(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown


def test_newlines_stay_where_asked() -> None:
    assert clean("a\nb\r\nc", lines=True) == "a\nb\nc"


@given(st.text(st.characters(codec=None, exclude_categories=[])))
def test_nothing_unseen_is_left(text: str) -> None:
    made = clean(text)
    assert not UNSEEN.search(made)
    assert not set(made) & {"\n", "\t"}
    made.encode("utf-8")
    assert clean(made) == made


@given(st.text(), st.integers(0, 30))
def test_fitted_text_is_never_wider(text: str, width: int) -> None:
    made = fit(clean(text), width)
    assert cell_len(made) <= width


def test_a_cut_is_shown() -> None:
    assert fit("abcdefgh", 6) == "abc..."
    assert fit("abcdef", 6) == "abcdef"


def test_characters_have_names() -> None:
    assert name_of("\x00") == "U+0000"
    assert name_of("\U000e0041") == "U+E0041"
