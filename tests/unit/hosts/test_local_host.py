"""The local host: short commands, jobs, files, and what it lets into an environment."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import BadInput, Waiting
from harness.hosts import local
from harness.hosts.local import LocalHost
from harness.hosts.protocol import Host, Job, JobState

ROOT = Path(__file__).resolve().parents[3]


def job(name: str, *argv: str, **environment: str) -> Job:
    ends = (datetime.now(UTC) + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Job(id=name, argv=argv, folder="here", environment=environment, ends_by_utc=ends)


def wait(host: LocalHost, name: str) -> JobState:
    end = time.monotonic() + 60
    while (state := host.state(name)).status != "exited":
        assert time.monotonic() < end, state
        time.sleep(0.02)
    return state


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LocalHost]:
    made = LocalHost(name="host-0", work=str(tmp_path / "work"), fleet_id="fleet-of-test")
    Path(made.work).mkdir()
    yield made
    for name in made.jobs():
        made.stop(name, reason="the test ended")


def test_it_is_a_host(host: LocalHost) -> None:
    seam: Host = host
    assert seam.address == "127.0.0.1"
    assert seam.facts().name == "host-0"


def test_a_short_command_runs_in_the_work_folder(host: LocalHost) -> None:
    done = host.run(["sh", "-c", "pwd; echo oh >&2; cat"], timeout_s=10)
    assert (done.stdout, done.stderr, done.exit_code) == (f"{host.work}\n", "oh\n", 0)


def test_a_failed_command_is_one_sentence_with_the_host(host: LocalHost) -> None:
    with pytest.raises(Waiting) as caught:
        host.run(["sh", "-c", "echo first >&2; echo why >&2; exit 4"], timeout_s=10)
    assert caught.value.sentence() == "host-0: 'sh' ended with status 4: why."
    assert host.run(["false"], timeout_s=10, check=False).exit_code == 1
    with pytest.raises(Waiting, match="No such file"):
        host.run(["/no/such/program"], timeout_s=10)


def test_a_command_that_takes_too_long_is_ended_with_its_children(host: LocalHost) -> None:
    began = time.monotonic()
    with pytest.raises(Waiting, match=r"ended after 2 s"):
        host.run(["sh", "-c", "sleep 500 & echo $! > child; wait"], timeout_s=2.0)
    assert time.monotonic() - began < 100
    child = int((Path(host.work) / "child").read_text())
    stat = Path(f"/proc/{child}/stat")
    end = time.monotonic() + 60
    while stat.exists() and stat.read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_child_that_keeps_the_output_open_does_not_hold_the_command(host: LocalHost) -> None:
    began = time.monotonic()
    assert host.run(["sh", "-c", "sleep 90 & echo out"], timeout_s=60).stdout == "out\n"
    assert time.monotonic() - began < 60


def test_only_named_variables_reach_commands_and_jobs(
    host: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("https_proxy", "http://proxy")
    host.start(job("j", "env", MINE="1"))
    wait(host, "j")
    for text in (
        host.run(["env"], timeout_s=10, environment={"MINE": "1"}).stdout,
        host.read("jobs/j/log").decode(),
    ):
        names = {line.partition("=")[0] for line in text.splitlines()}
        assert {"NCCL_DEBUG", "https_proxy", "PATH", "MINE", "HARNESS_FLEET"} <= names
        assert "secret" not in text and "PYTHONPATH" not in names and "LC_ALL" not in names
        assert "LANG=C.UTF-8" in text


def test_a_job_started_twice_runs_once_and_its_log_is_read_by_offset(host: LocalHost) -> None:
    one = job("arm.a.1", "sh", "-c", "echo ran >> runs; pwd; sleep 0.2")
    host.start(one)
    host.start(one)
    state = wait(host, "arm.a.1")
    assert state.exit_code == 0
    assert host.read("here/runs") == b"ran\n"
    log = f"{host.work}/here\n".encode()
    assert host.read("jobs/arm.a.1/log", offset=3) == log[3:]
    assert host.read("jobs/arm.a.1/log", offset=len(log)) == b""
    assert host.read("jobs/none/log") == b""
    with pytest.raises(Waiting, match="ids are used once"):
        host.start(job("arm.a.1", "true"))


def test_stop_ends_a_job_and_absent_is_no_error(host: LocalHost) -> None:
    assert host.state("nothing").status == "absent"
    assert host.stop("nothing", reason="x").status == "absent"
    host.start(job("j", "sleep", "100"))
    assert host.state("j").status == "running"
    state = host.stop("j", reason="a sibling failed")
    assert (state.status, state.exit_code, state.reason) == ("exited", -15, "a sibling failed")


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden", "a\0"])
def test_a_job_id_cannot_leave_its_folder(host: LocalHost, name: str) -> None:
    with pytest.raises(BadInput, match="cannot name a job"):
        host.state(name)


def test_a_log_of_100_mb_is_read_in_flat_memory(host: LocalHost) -> None:
    host.start(job("big", "sh", "-c", "head -c 104857600 /dev/zero"))
    assert wait(host, "big").log_bytes == 104857600
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    offset = 0
    while piece := host.read("jobs/big/log", offset=offset):
        offset += len(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert offset == 104857600
    assert peak < 4 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10  # KiB


def test_a_short_command_that_floods_is_cut_to_its_end(host: LocalHost) -> None:
    done = host.run(["sh", "-c", "head -c 30000000 /dev/zero; echo end"], timeout_s=20)
    assert len(done.stdout) == local._SHOWN_BYTES and done.stdout.endswith("end\n")


def test_put_and_get_copy_files_and_folders_whole(host: LocalHost, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "launch").write_text("#!/bin/sh\necho hi\n")
    (tree / "launch").chmod(0o755)
    host.put(tree, "source/abc/trainer")
    assert host.run(["source/abc/trainer/launch"], timeout_s=10).stdout == "hi\n"
    (tree / "launch").unlink()
    (tree / "new").touch()
    host.put(tree, "source/abc/trainer")
    host.get("source/abc/trainer", tmp_path / "back")
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == ["inner", "new"]
    host.put(tree / "new", "one")
    host.put(tree / "new", "one")
    assert sorted(os.listdir(host.work)) == ["one", "source", "tmp"]
    with pytest.raises(Waiting, match="failed"):
        host.get("nothing", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_put_that_fails_keeps_the_old_folder(
    host: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "old").touch()
    host.put(tmp_path / "tree", "kept")
    real = os.rename

    def rename(source: Path, target: Path) -> None:
        if str(source).endswith(".tmp"):
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(Waiting, match="Input/output error"):
        host.put(tmp_path / "tree", "kept")
    monkeypatch.undo()
    assert sorted(os.listdir(host.work)) == ["kept"]
    assert os.listdir(Path(host.work) / "kept") == ["old"]


def test_the_pushed_helper_is_used_once_it_is_there(host: LocalHost) -> None:
    pushed = Path(host.work) / "source" / "abc" / "helper"
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "harness" / "onhost", pushed / "harness" / "onhost", ignore=without)
    shutil.copy(ROOT / "harness" / "__init__.py", pushed / "harness")
    (pushed / "trainer").mkdir()
    for name in ("__init__.py", "contract.py"):
        shutil.copy(ROOT / "trainer" / name, pushed / "trainer")
    (pushed / "harness" / "onhost" / "whoami.py").write_text("print(__file__)\n")
    with pytest.raises(Waiting, match="No module named"):
        host.helper("whoami")
    said = host.with_helper("source/abc/helper").helper("whoami").stdout
    assert said == f"{pushed}/harness/onhost/whoami.py\n"
    assert not list(pushed.rglob("__pycache__"))


@pytest.mark.parametrize("folder", [True, False])
def test_a_full_disk_is_said_shortly_with_what_to_do(
    host: LocalHost, tmp_path: Path, folder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: object, target: object, **rest: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(source), None, str(target))

    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "one").touch()
    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(Waiting) as caught:
        host.put(tree if folder else tree / "one", "there")
    assert caught.value.what.endswith("failed (No space left on device)")
    assert caught.value.next_command.startswith("df -h")
    assert not list(Path(host.work).glob("**/*there*"))
