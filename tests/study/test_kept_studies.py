"""The studies in evidence/ are worked out again, by the product and by the standalone verifier."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
KEPT = sorted(path.parent for path in (TOP / "evidence").glob("*/closing.json"))


STANDALONE = str(TOP / "harness" / "standalone.py")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=TOP, capture_output=True, text=True, check=False
    )


def verified(*words: str) -> str:
    done = run(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_kept_study_is_worked_out_again(folder: Path) -> None:
    said = verified("-m", "harness", "verify", str(folder))
    assert "decisions" in said and "the same" in said
    assert (folder / "README.md").read_text().startswith("# ")


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_reader_without_the_product_checks_it(folder: Path) -> None:
    said = verified("-I", STANDALONE, str(folder))
    assert "worked out again" in said and "was checked agrees" in said


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_its_page_has_every_case_with_every_models_answer(folder: Path) -> None:
    with tarfile.open(folder / "evidence.tar.gz") as archive:
        member = archive.extractfile("inputs/test.cases.jsonl")
        assert member is not None
        ids = [json.loads(line)["id"] for line in member]
    models = [
        model["name"] for model in json.loads((folder / "results.json").read_text())["models"]
    ]
    page = (folder / "report" / "answers.html").read_text()
    articles = re.findall(r'<article id="(c\d+)"[^>]*data-answered="([^"]*)"', page)
    assert [name for name, _ in articles] == [f"c{number}" for number in range(1, len(ids) + 1)]
    assert {answered for _, answered in articles} == {" ".join(models)}
    assert all(identity in page for identity in ids)


def test_words_beside_it_are_left_alone_and_anything_else_is_not(tmp_path: Path) -> None:
    folder = shutil.copytree(KEPT[0], tmp_path / "kept")
    (folder / "README.md").write_text("# Other words\n")
    assert "README.md: the words of whoever keeps this" in verified(
        "-m", "harness", "verify", str(folder)
    )
    verified("-I", STANDALONE, str(folder))
    (folder / "read.me").write_text("more")
    for words in (("-m", "harness", "verify"), ("-I", STANDALONE)):
        done = run(*words, str(folder))
        assert done.returncode != 0 and "SHA256SUMS" in done.stderr
