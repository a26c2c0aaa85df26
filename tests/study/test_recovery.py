"""What vanished between two starts is found, said, and made good where it can be."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from harness.journal import read_entries
from tests.study.conftest import Desk, MakeDesk
from tests.study.test_faults_of_arms import alive, pid_of, start, wait_for
from tests.toy_plan import toy_with

TRAINING = "toy/2*/fleet/hosts/host-0/jobs/train.single.1/started.json"


def killed_while_training(desk: Desk) -> int:
    """Kill the operator in the first arm; returns the worker's process id."""
    process = start(desk)
    started = wait_for(TRAINING, desk)
    process.kill()
    process.communicate()
    return pid_of(started)


def test_a_killed_watchdog_is_armed_again_before_anything_starts(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(trainer=toy_with(tmp_path, TOY_UPDATE_SECONDS="0.3"))
    killed_while_training(desk)
    beat = desk.latest / "fleet" / "deadline" / "heartbeat.json"
    deadline = json.loads(beat.read_text())["deadline_utc"]
    os.kill(json.loads(beat.read_text())["pid"], signal.SIGKILL)
    done = desk.run()
    assert done.code == 0, done.err
    entries, _ = read_entries(desk.latest / "journal.jsonl")
    assert any(entry.key == "deadline/arm-again" for entry in entries)
    assert json.loads(beat.read_text())["deadline_utc"] == deadline, "the time never moves"


def test_a_removed_prepared_json_is_refused_with_the_command_that_brings_it_back(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(trainer=toy_with(tmp_path, TOY_UPDATE_SECONDS="0.1"))
    killed_while_training(desk)
    desk.plan.with_name("prepared.json").unlink()
    done = desk.harness("run", str(desk.plan), "--local", "--json")
    assert done.code == 3, done.err
    subprocess.run(["bash", "-c", json.loads(done.out)["next"]], check=True)
    again = desk.run()
    assert again.code == 0, again.err


def test_a_job_whose_folder_was_removed_ends_and_is_a_failed_attempt(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(trainer=toy_with(tmp_path, TOY_UPDATE_SECONDS="0.5"))
    process = start(desk)
    started = wait_for(TRAINING, desk)
    worker = pid_of(started)
    time.sleep(0.5)  # until the command that started it is done with the folder
    shutil.rmtree(started.parent)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "its job folder is gone" in " ".join(err.split())
    assert not alive(worker)


def test_two_commands_at_once_drive_one_run(make_desk: MakeDesk) -> None:
    desk = make_desk()
    both = [start(desk), start(desk)]
    ends = [(each.communicate(timeout=120), each.returncode) for each in both]
    assert sorted(code for _, code in ends) == [0, 4], ends
    assert len(list(desk.runs.glob("toy/2*"))) == 1


def test_a_damaged_or_missing_journal_is_refused(make_desk: MakeDesk, finished: Desk) -> None:
    desk = make_desk()
    run = desk.runs / "toy" / finished.latest.name
    shutil.copytree(finished.latest, run)
    journal = run / "journal.jsonl"
    with journal.open("a") as handle:
        handle.write("garbage\n")
    assert desk.run().code == 3
    journal.unlink()
    done = desk.run()
    assert done.code == 3
    assert "receipts and no journal" in " ".join(done.err.split())
