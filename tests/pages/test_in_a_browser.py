"""The pages as a person meets them, in a real browser, from file://, with hostile answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.report import Evidence
from tests.pages.browser import Page
from tests.pages.conftest import CASES, FOURTH

SHOWN = "[...document.querySelectorAll('article')].filter(a => a.getClientRects().length)"
MATCHING = "[...document.querySelectorAll('article')].filter(a => !a.hidden)"
STATUS = "document.querySelector('.pages span').textContent"
VIEWS = {
    "desktop": (1280, False, False),
    "dark": (1280, True, False),
    "phone": (390, False, True),
    "narrow": (320, True, True),
}


def choose(page: Page, field: str, value: str) -> None:
    """Set a filter as a person does: the value, then the event."""
    page.ask(
        f"(f => {{ f.value = {json.dumps(value)};"
        " f.dispatchEvent(new Event('input', {bubbles: true})); })"
        f"(document.querySelector('.controls').elements.{field})"
    )


def matching(page: Page) -> list[str]:
    """Case ids that the filters let through, in order."""
    found: list[str] = page.ask(f"{MATCHING}.map(a => a.querySelector('h2 .small').textContent)")
    return found


@pytest.mark.parametrize("name", ["index", "answers"])
def test_a_page_asks_for_nothing_complains_of_nothing_and_runs_nothing_of_an_answer(
    page: Page, folder: Path, name: str
) -> None:
    page.open(folder / f"{name}.html")
    assert page.ask("document.title").startswith("two-workers")
    assert page.requests == [(folder / f"{name}.html").resolve().as_uri()]
    assert page.complaints == []
    assert page.ask("typeof window.owned") == "undefined"
    assert page.ask("document.querySelectorAll('img, iframe, object, link, base').length") == 0
    assert page.ask("document.querySelectorAll('script').length") == (name == "answers")


def test_the_policy_stops_a_script_that_got_in_all_the_same(page: Page, folder: Path) -> None:
    whole = (folder / "answers.html").read_text()
    spoiled = folder / "spoiled.html"
    spoiled.write_text(
        whole.replace(
            "<main", "<script>window.owned = 1</script><img src=x onerror=owned=1><main", 1
        )
    )
    page.open(spoiled)
    assert page.ask("typeof window.owned") == "undefined"
    assert "Content Security Policy" in "".join(page.complaints)
    assert page.answered == [spoiled.resolve().as_uri()]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["index", "answers"])
def test_nothing_sticks_out_of_the_page(page: Page, folder: Path, name: str, view: str) -> None:
    width, dark, phone = VIEWS[view]
    page.view(width, 844, dark=dark, phone=phone)
    page.open(folder / f"{name}.html")
    page.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.ask("document.documentElement.scrollWidth") <= width
    paper = page.ask("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(22, 24, 26)") is dark


def test_the_question_and_the_decisions_stand_first_and_a_phone_shows_them_whole(
    page: Page, folder: Path
) -> None:
    page.view(390, 844, phone=True)
    page.open(folder / "index.html")
    order = page.ask(
        "[...document.querySelectorAll('.question, .verdict, #decisions, #learning, #limits')]"
        ".map(e => e.id || e.className)"
    )
    assert order == ["question", "verdict fail", "decisions", "learning", "limits"]
    region = "document.querySelector('#decisions .scroll')"
    assert page.ask(f"{region}.scrollWidth <= {region}.clientWidth")


def test_every_case_is_on_the_page_and_fifty_are_shown(
    page: Page, folder: Path, study: Evidence
) -> None:
    page.open(folder / "answers.html")
    assert matching(page) == [case.id for case in study.cases]
    assert page.ask(f"{SHOWN}.length") == 50
    assert page.ask(STATUS) == f"Cases 1 to 50 of {CASES}"
    page.ask("document.querySelector('.pages .next').click()")
    assert page.ask(f"{SHOWN}[0].id") == "c51"


def test_filters_show_exactly_the_cases_that_they_name(
    page: Page, folder: Path, study: Evidence
) -> None:
    def right(case: int, model: str) -> bool:
        return study.cases[case].answers[model].correct

    every = range(CASES)
    pair_lost = [i for i in every if right(i, "single") and not right(i, "pair")]
    pair_gained = [i for i in every if right(i, "pair") and not right(i, "single")]
    expected = {
        ("family", "sort"): [i for i in every if study.cases[i].family == "sort"],
        ("wording", "3"): [i for i in every if study.cases[i].wording == 3],
        ("show", "wrong single"): [i for i in every if not right(i, "single")],
        ("show", "invalid pair"): [
            i for i in every if not study.cases[i].answers["pair"].valid_json
        ],
        ("show", "lost pair single"): pair_lost,
        ("show", "changed pair single"): sorted(pair_lost + pair_gained),
        ("text", "number 77."): [77],
    }
    page.open(folder / "answers.html")
    for (field, value), cases in expected.items():
        choose(page, field, value)
        assert matching(page) == [study.cases[i].id for i in cases], (field, value)
        assert 0 < len(cases) < CASES
        choose(page, field, "")
    choose(page, "family", "sort")
    choose(page, "show", f"right {FOURTH}")
    assert page.ask(STATUS) == "No case matches."
    page.ask("document.querySelector('.clear').click()")
    assert len(matching(page)) == CASES


def test_an_address_brings_back_the_case_or_the_filters(
    page: Page, folder: Path, study: Evidence
) -> None:
    page.open(folder / "answers.html", "c700")
    assert page.ask("document.activeElement.id") == "c700"
    assert abs(page.ask("document.getElementById('c700').getBoundingClientRect().top")) < 60
    choose(page, "show", "lost pair single")
    choose(page, "family", "lookup")
    found, hash_ = matching(page), page.ask("location.hash")
    page.open(folder / "answers.html", hash_[1:])
    assert matching(page) == found
    for broken in ("c99999", "show=%E0%A4%A", "text", "__proto__=1", "family=none"):
        page.open(folder / "answers.html", broken)
        assert page.complaints == []
        assert len(matching(page)) == CASES or broken == "family=none"


def test_flips_of_the_report_lead_to_their_cases(page: Page, folder: Path, study: Evidence) -> None:
    page.open(folder / "index.html")
    links = page.ask("[...document.querySelectorAll('.flips')].map(d => d.querySelector("
                     "'a[href*=show]').getAttribute('href'))")  # fmt: skip
    link = next(each for each in links if "pair%20single" in each)
    listed = page.ask(
        f"[...document.querySelector('a[href={json.dumps(link)}]').closest('details')"
        ".querySelectorAll('a[title]')].map(a => a.title)"
    )
    page.open(folder / "answers.html", link.partition("#")[2])
    assert sorted(matching(page)) == sorted(listed)


def test_the_keyboard_alone_is_enough(page: Page, folder: Path) -> None:
    page.open(folder / "answers.html")
    page.press("Tab")
    assert page.ask("document.activeElement.className") == "skip"
    page.press("j", text="j")
    page.press("j", text="j")
    assert page.ask("document.activeElement.id") == "c2"
    page.press("k", text="k")
    assert page.ask("document.activeElement.id") == "c1"
    page.press("/", text="/")
    assert page.ask("document.activeElement.name") == "text"
    for key in "77.":
        page.press(key, text=key)
    page.press("j", text="j")
    assert page.ask("document.activeElement.value") == "77.j"
    page.press("Escape")
    assert page.ask("document.activeElement === document.body")
    reached = set()
    for _ in range(12):
        page.press("Tab")
        reached.add(page.ask("document.activeElement.name || document.activeElement.className"))
    assert page.ask("document.querySelector('.controls').getClientRects().length") == 1


def test_filters_are_quick_with_a_thousand_cases_of_four_models(page: Page, folder: Path) -> None:
    """The median of several, so that one pause of a busy machine does not count."""
    page.open(folder / "answers.html")
    choose(page, "text", "warm")
    spent = sorted(
        page.ask(
            "(() => { const from = performance.now(), f = document.querySelector('.controls');"
            f" f.elements.show.value = '{value} single';"
            " f.dispatchEvent(new Event('input')); document.body.offsetHeight;"
            " return performance.now() - from; })()"
        )
        for value in ("right", "wrong") * 4
    )
    assert spent[len(spent) // 2] < 2000


def test_print_shows_all_that_match_unfolded_and_without_controls(page: Page, folder: Path) -> None:
    page.open(folder / "answers.html", "show=wrong single")
    wrong = len(matching(page))
    assert wrong > 50
    page.view(1280, 900, print_="print")
    assert page.ask(f"{SHOWN}.length") == wrong
    assert page.ask("document.querySelector('.controls').getClientRects().length") == 0
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_scripts_every_answer_is_still_there(page: Page, folder: Path) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(folder / "answers.html")
    assert page.ask(f"{SHOWN}.length") == CASES
    assert page.ask("document.querySelector('.controls').hidden")
