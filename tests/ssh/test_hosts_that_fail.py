"""A host is cut off, a rank is stopped, a disk is full, the operator is killed at every stage."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from harness.journal import read_entries
from harness.onhost import processes
from harness.receipts import RECEIPTS, TerminateReceipt, TrainReceipt
from harness.strict import load_file
from tests.ssh.conftest import MakeRack, Rack
from tests.ssh.machines import Machine
from tests.ssh.netns import Net
from tests.ssh.test_faults import PAIR_ONLY, attempts, ended, pid_of, slow_desk, start, wait_for
from tests.study.conftest import Desk, make_desk_in
from tests.toy_plan import toy_with

HERE = Path(__file__).parent
KILLED = HERE.parent / "faults" / "killed.py"
SILENT_S = "12"
LIMIT_S = 240.0


def wait_beat(rack: Rack, slot: int, attempt: int) -> Path:
    """The rank trains: its first heartbeat is there."""
    return wait_for(rack, slot, f"out/train.pair.{attempt}/heartbeat-{slot}.json")


def test_a_link_that_is_cut_and_comes_back_costs_nothing(
    linked: tuple[Rack, Net], tmp_path: Path
) -> None:
    rack, net = linked
    desk = slow_desk(tmp_path, **PAIR_ONLY)
    process = start(rack, desk)
    wait_beat(rack, 1, 1)
    net.cut(1)
    time.sleep(3)
    net.cut(1, back=True)
    ended(process)
    assert attempts(desk) == {"pair": ["done"]}
    preflight = json.loads((desk.latest / "receipts" / "preflight.json").read_text())
    routes = {
        (line["host"], line["observed"])
        for line in preflight["lines"]
        if line["check"].startswith("route to")
    }
    assert routes == {(f"host-{slot}", f"train from {net.private(slot)}") for slot in (0, 1)}
    for slot in (0, 1):
        job = json.loads(wait_for(rack, slot, "jobs/train.pair.1/job.json").read_text())
        given = dict(zip(job["argv"][1::2], job["argv"][2::2], strict=False))
        assert (given["--address"], given["--interface"]) == (net.private(0), "train")


def test_a_host_that_stays_away_ends_its_sibling_and_the_run_goes_on_later(
    linked: tuple[Rack, Net], tmp_path: Path
) -> None:
    rack, net = linked
    rack.hosts_file(patience_s=3)
    desk = slow_desk(tmp_path, "2", **PAIR_ONLY)
    process = start(rack, desk)
    wait_beat(rack, 1, 1)
    net.cut(1)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 4, out + err
    said = " ".join(err.split())
    assert "Traceback" not in said and "host-1" in said
    assert "harness run" in said, "the next command is named"
    sibling = json.loads(wait_for(rack, 0, "jobs/train.pair.1/exit.json").read_text())
    assert sibling["reason"] == "stopped: a sibling failed"
    net.cut(1, back=True)
    done = rack.run(desk)
    assert done.code == 0, done.err
    assert attempts(desk) == {"pair": ["lost", "done"]}
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    assert "host-1: out of reach for" in train.arms[0].attempts[0].reason


def test_a_stopped_rank_counts_as_stalled_and_its_sibling_is_ended(
    rack: Rack, tmp_path: Path
) -> None:
    desk = slow_desk(tmp_path, "0.5", **PAIR_ONLY)
    process = subprocess.Popen(
        [sys.executable, str(HERE / "hurried.py"), SILENT_S, "run", str(desk.plan), "--hosts",
         str(rack.folder / "hosts.json")],
        cwd=desk.folder, env=desk.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_beat(rack, 1, 1)
    stopped = pid_of(wait_for(rack, 1, "jobs/train.pair.1/started.json"))
    os.kill(stopped, signal.SIGSTOP)
    ended(process)
    assert attempts(desk) == {"pair": ["failed", "done"]}
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    assert "no heartbeat for" in train.arms[0].attempts[0].reason
    assert processes.look(stopped) is None, "also a stopped process is ended"
    sibling = json.loads(wait_for(rack, 0, "jobs/train.pair.1/exit.json").read_text())
    assert sibling["reason"] == "stopped: a sibling failed"


@contextlib.contextmanager
def small_disk(machine: Machine, mebibytes: int) -> Iterator[None]:
    machine.work.mkdir()
    size = f"size={mebibytes}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "harness-test", machine.work], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(machine.work)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all the space there is."""
    path = folder / "filler"
    with open(path, "wb", buffering=0) as handle, contextlib.suppress(OSError):
        while handle.write(bytes(4096)):
            pass
    return path


def test_a_full_disk_is_said_and_the_run_goes_on_when_there_is_space(
    make_rack: MakeRack, tmp_path: Path
) -> None:
    rack = make_rack()
    with small_disk(rack.machines[1], 96):
        arm = {**PAIR_ONLY["arms"][0], "attempts": 3}
        desk = slow_desk(tmp_path, arms=[arm], decisions=PAIR_ONLY["decisions"])
        process = start(rack, desk)
        wait_beat(rack, 1, 1)
        filler = fill(rack.machines[1].work)
        out, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 4, out + err
        said = " ".join(err.split())
        assert "Traceback" not in said and "host-1: its disk is full" in said, said
        assert said.count("No space left on device") >= 2, "also where the run stopped"
        for slot in (0, 1):
            record = json.loads(wait_for(rack, slot, "jobs/train.pair.1/exit.json").read_text())
            assert record["exit_code"] != 0
        filler.unlink()
        done = rack.run(desk)
        assert done.code == 0, done.err
        made = attempts(desk)["pair"]
        assert made[0] == "failed" and made[-1] == "done"
        end = load_file(TerminateReceipt, desk.latest / "receipts" / "terminate.json")
        assert end.residue == ()


def test_a_command_line_that_cannot_run_is_found_before_any_arm(rack: Rack, tmp_path: Path) -> None:
    trainer = toy_with(tmp_path)
    launch = Path(trainer["path"]) / "launch"
    refusal = "if '--dry-run' in sys.argv: sys.exit('launch: no fabric is named')\n"
    launch.write_text(launch.read_text().replace("here =", f"{refusal}here =", 1))
    desk = make_desk_in(tmp_path, trainer=trainer)
    done = rack.run(desk)
    assert done.code == 4, done.err
    said = " ".join(done.err.split())
    assert "dry run of single" in said and "launch: no fabric is named" in said
    assert not list(rack.machines[0].work.glob("**/jobs/train.*")), "nothing was started"
    given_up = rack.run(desk, "--abandon", "the test is over")
    assert given_up.code == 0, given_up.err


def test_an_operator_killed_between_all_stages_ends_with_one_result(
    desk: Desk, rack: Rack, tmp_path: Path
) -> None:
    memory, hosts = tmp_path / "memory", str(rack.folder / "hosts.json")
    argv = [sys.executable, str(KILLED), "stage", str(memory), str(desk.plan), str(desk.runs)]
    kills = 0
    while (
        done := subprocess.run(
            [*argv, hosts], cwd=desk.folder, env=desk.environment(), capture_output=True,
            text=True, check=False,
        )
    ).returncode == -signal.SIGKILL:  # fmt: skip
        kills += 1
        assert kills <= len(RECEIPTS)
    assert done.returncode == 0, done.stderr
    assert kills == len(RECEIPTS), "once after every stage's receipt"
    assert attempts(desk) == {"single": ["done"], "pair": ["done"]}
    assert len(list((desk.runs / "toy").glob("2*"))) == 1, "one run, not several"
    entries, _ = read_entries(desk.latest / "journal.jsonl")
    keys = [(entry.kind, entry.key) for entry in entries if entry.kind != "note"]
    assert len(keys) == len(set(keys)), "an intent, outcome or receipt is there twice"
    started = [path.parent.name for path in rack.machines[0].work.glob("**/started.json")]
    assert len(started) == len(set(started)), "no job was started twice"
