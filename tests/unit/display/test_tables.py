"""The final table, status and errors in 80 columns and in any encoding."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import RenderableType

from harness.closing import ClosingRecord
from harness.display import output
from harness.display.console import make_console
from harness.display.errors import show_error
from harness.display.status import status_tables, status_value
from harness.display.tables import final_table
from harness.errors import Leaked, Refused
from harness.journal import Entry
from harness.plan import Plan, load_plan
from harness.results import Resources, Results
from harness.strict import load_file
from tests.unit.report.make_evidence import write_evidence

Study = tuple[Plan, Results, Resources]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Plan, results and resources of the synthetic study."""
    folder = tmp_path_factory.mktemp("study") / "archive"
    closing = write_evidence(folder)
    assert closing is not None
    return (
        load_plan(folder / "plan.json").plan,
        load_file(Results, folder / "results.json"),
        load_file(ClosingRecord, closing).resources,
    )


def printed(value: RenderableType) -> str:
    """What comes out of a pipe."""
    out = io.StringIO()
    make_console(out).print(value)
    return out.getvalue()


def test_the_final_table_says_all_in_words(study: Study) -> None:
    plan, results, resources = study
    text = printed(final_table(results, resources, plan=plan, report=Path("runs/x/index.html")))
    for said in (
        "20 / 24", "83.33 %", "held-out wordings", "PASS", "FAIL", "99.5 % one-sided",
        "exploratory",
        "31.50 s", "4.000 MB", "at most $0.84",
        "a bound, not an invoice", "runs/x/index.html", "not run: serve",
    ):  # fmt: skip
        assert said in text, said
    assert max(cell_len(line) for line in text.splitlines()) <= 80


def test_what_did_not_run_is_not_zero(study: Study) -> None:
    _, results, _ = study
    empty = results.model_copy(update={"models": (), "arms": (), "decisions": ()})
    text = printed(final_table(empty, None))
    for part in ("accuracy", "decisions", "training", "cost"):
        assert f"{part}: not run" in text
    assert "0 /" not in text


def test_many_arms_with_long_names_stay_within_80_columns(study: Study) -> None:
    plan, results, resources = study
    names = [f"an-arm-with-quite-a-long-name-number-{i}" for i in range(6)]
    models = tuple(results.models[1].model_copy(update={"name": name}) for name in names)
    arms = tuple(results.arms[1].model_copy(update={"name": name}) for name in names)
    wide = results.model_copy(update={"models": models, "arms": arms})
    text = printed(final_table(wide, resources, plan=plan, report=Path("runs") / ("x" * 200)))
    assert max(cell_len(line) for line in text.splitlines()) <= 80


PROGRAM = """
import sys
from harness.display.output import print_json, show
from harness.display.tables import final_table
from harness.results import Resources, Results
from harness.strict import load_file
from pathlib import Path
results = load_file(Results, Path(sys.argv[1]))
name = "caf\\u00e9 \\u4e2d\\u6587 \\u2212 \\x1b[2J"
decided = results.decisions[0].model_copy(update={"name": name})
show(final_table(results.model_copy(update={"decisions": (decided,)}), None))
print_json({"name": "caf\\u00e9 \\U0001f600"})
"""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_encoding_gets_a_table(study: Study, tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(study[1].to_json()))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    text = done.stdout.decode(encoding)
    assert "PASS" in text
    assert "\x1b" not in text
    lines = text.splitlines()
    assert max(cell_len(line) for line in lines) <= 80
    assert json.loads(lines[-1]) == {"name": "caf\u00e9 \U0001f600"}
    assert lines[-1].isascii()
    assert ("\u2500" in text) == (encoding == "utf-8")


def _entry(seq: int, kind: Any, key: str, **data: Any) -> Entry:
    return Entry(
        seq=seq, kind=kind, key=key, data=data, utc="2026-11-29T20:00:00.000000Z",
        monotonic_ns="1", previous="0" * 64,
    )  # fmt: skip


JOURNAL = (
    _entry(0, "receipt", "prepare", seconds=1.5),
    _entry(1, "receipt", "commit", seconds=0.2),
    _entry(2, "intent", "attempt/train/single/1"),
    _entry(3, "outcome", "attempt/train/single/1", outcome="failed"),
    _entry(4, "intent", "attempt/train/single/2"),
)


def test_status_says_what_is_done_what_runs_and_what_is_next() -> None:
    text = printed(status_tables("two-workers  run 1", JOURNAL, ["train-single-0"], "2026-..."))
    assert "prepare" in text
    assert "1.500 s" in text
    assert "train-single-0" in text
    assert "failed" in text
    value = status_value("r", JOURNAL, [], "")
    assert value["next"] == "provision"
    assert value["stages"]["commit"] == "done"
    assert value["attempts"] == {"train/single/1": "failed", "train/single/2": "running"}


@pytest.mark.parametrize(
    ("last", "more", "states"),
    [
        ("push", {"incomplete": {"because": "deadline", "why": "late"}},
         {"push": "ended early", "probe": "not run", "validate": "not run", "decide": "next",
          "report": "later"}),
        ("release", {"basis": "abandoned"},
         {"push": "not run", "seal": "not run", "terminate": "next", "report": "not run"}),
    ],
)  # fmt: skip
def test_stages_that_will_not_come_are_not_run(
    last: str, more: dict[str, Any], states: dict[str, str]
) -> None:
    """After a study had to end early, and after it was given up."""
    made = {"provision": {"seconds": 1.0}, last: {"seconds": 1.0, **more}}
    journal = [
        JOURNAL[0].model_copy(update={"kind": "receipt", "key": name, "data": data})
        for name, data in made.items()
    ]
    value = status_value("r", journal, [], "")
    assert {name: value["stages"][name] for name in states} == states
    assert value["next"] == next(name for name, state in states.items() if state == "next")


def test_an_error_is_a_sentence_and_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(
        Refused("the bound is over the ceiling", where="plan.json#/budget", next_command="x")
    )
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.splitlines() == [
        "refused: plan.json#/budget: the bound is over the ceiling.",
        "next: x",
    ]


def test_a_hostile_error_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(Leaked("left \x1b[2J\u202e", where="i-0abc\x07"))
    assert capsys.readouterr().err == "lost or leaked: i-0abc: left .\n"


def test_an_error_for_a_program_is_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "sys", sys)
    show_error(Refused("no", where="w", next_command="n"), as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "error": "refused", "what": "no", "where": "w", "next": "n", "exit_code": 3,
    }  # fmt: skip
