"""However a command ends: no traceback, a code, and with --json one JSON value."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.app import with_runs
from harness.cli.endings import OurFault, Stopped, as_harness_error, stops_as_errors
from harness.display.console import make_console
from harness.display.progress import PlainProgress
from harness.display.unfailing import Unfailing
from harness.errors import BadInput, Waiting, command
from trainer import contract

TOP = Path(__file__).parents[3]


def harness(
    folder: Path, *words: str, shell: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """`harness WORDS`, with redirections of a shell where they are given."""
    line = f'{sys.executable} -m harness "$@" {shell}'
    return subprocess.run(
        ["bash", "-c", line, "harness", *words],
        cwd=folder, capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(TOP), **more},
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--json"),
        ("run", "--json", "--bogus"),
        ("check", "nowhere", "--json"),
        ("status", "nothing", "--json"),
        ("verify", ".", "--json"),
    ],
)
def test_a_mistake_is_one_json_value_with_its_exit_code(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = harness(tmp_path, *words)
    assert done.returncode == 2
    said = json.loads(done.stdout)
    assert said["exit_code"] == 2 and said["what"]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", [">&-", "2>&-", ">&- 2>&- <&-", "2>/dev/full"])
def test_closed_or_full_streams_do_not_change_the_exit_code(tmp_path: Path, shell: str) -> None:
    done = harness(tmp_path, "status", shell=shell)
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    done = harness(tmp_path, "--help", shell="| head -c 1")
    assert "Traceback" not in done.stderr


def test_an_error_is_not_broken_into_lines(tmp_path: Path) -> None:
    folder = "a-long-name/" * 20
    done = harness(tmp_path, "check", folder)
    assert f"{folder.rstrip('/')}: " in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_a_working_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    line = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m harness status"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(TOP)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_systems_errors_become_sentences() -> None:
    full = as_harness_error(OSError(errno.ENOSPC, "No space left on device"), "runs")
    assert isinstance(full, Waiting) and full.where == "runs" and full.next_command
    denied = as_harness_error(PermissionError(errno.EACCES, "Permission denied", "x/y"))
    assert isinstance(denied, BadInput) and denied.where == "x/y"
    assert isinstance(as_harness_error(contract.ContractError("no JSON")), BadInput)


def test_a_mistake_of_ours_leaves_its_traceback_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        dict[str, int]()["nothing"]
    except KeyError as error:
        said = as_harness_error(error)
    assert isinstance(said, OurFault) and said.exit_code == 1
    assert "KeyError" in Path(said.where).read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_once_and_the_clean_up_is_not_cut_short(number: signal.Signals) -> None:
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, signal.SIG_DFL) for each in stops}
    cleaned = False
    try:
        with pytest.raises(Stopped) as caught, stops_as_errors():
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(number)  # the second one
                cleaned = True
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert cleaned
    assert caught.value.exit_code == 128 + number


def test_progress_that_cannot_be_written_stops_nothing() -> None:
    class Broken(PlainProgress):
        def stage(self, name: str, detail: str = "") -> None:
            raise BrokenPipeError

    progress = Unfailing(Broken(make_console(sys.stderr)))
    progress.stage("train")
    progress.note("silently dropped")


def test_a_command_to_type_is_safe_for_a_shell_and_keeps_the_runs_folder() -> None:
    assert command("run", "my plans/a.json", "--local") == "harness run 'my plans/a.json' --local"
    assert with_runs("harness run x --local", Path("my runs")).endswith("--runs 'my runs'")
    assert with_runs("harness run x --local", Path("runs")) == "harness run x --local"
    assert with_runs("harness verify x", Path("other")) == "harness verify x"


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("status", "--help")])
def test_help_that_nobody_can_be_told_is_one_sentence(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = harness(tmp_path, *words, shell="> /dev/full")
    assert done.returncode == 4
    assert "standard output" in done.stderr and "Traceback" not in done.stderr
