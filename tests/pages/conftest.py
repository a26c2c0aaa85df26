"""One browser and one large, hostile study for all tests of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.measuring.rows import ScoreLine
from harness.report import Evidence, build_report, load_evidence
from harness.report.evidence import Case
from tests.pages.browser import Browser, Page
from tests.unit.report.make_evidence import HOSTILE, write_evidence

CASES = 1024
FOURTH = "windows"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, ended afterwards."""
    made = Browser(tmp_path_factory.mktemp("browser") / "profile")
    yield made
    made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh tab of a desktop's size."""
    made = Page(browser)
    made.view(1280, 900)
    yield made
    made.close()


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """1,024 cases, the reference and three arms, whose third answers with hostile text."""
    folder = tmp_path_factory.mktemp("study") / "archive"
    found = load_evidence(folder, write_evidence(folder, cases=CASES))
    arms = (*found.plan.arms, found.plan.arms[1].model_copy(update={"name": FOURTH}))
    cases = tuple(_with_fourth(i, case) for i, case in enumerate(found.cases))
    return replace(found, plan=found.plan.model_copy(update={"arms": arms}), cases=cases)


def _with_fourth(i: int, case: Case) -> Case:
    answer = ScoreLine(
        id=case.id, role="test", family=case.family, wording=case.wording, correct=False,
        valid_json=False, reason="not-json",
        text=HOSTILE[i % len(HOSTILE)].encode("utf-8", "backslashreplace").decode(),
    )  # fmt: skip
    return replace(case, answers={**case.answers, FOURTH: answer})


@pytest.fixture(scope="session")
def folder(study: Evidence, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The written report."""
    made = tmp_path_factory.mktemp("report")
    build_report(study, raster=False).write(made)
    return made
