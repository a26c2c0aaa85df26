"""One host over real sshd: commands, floods of output, detached jobs."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from harness.clock import utc_text
from harness.errors import Waiting
from harness.hosts.protocol import Job, Unreachable
from harness.hosts.ssh import SSHHost
from tests.ssh.conftest import Rack, wait_until

FLOOD_BYTES = 2_040_000_000 if os.environ.get("HARNESS_ALL_KILLS") else 204_000_000
"""Two gigabytes in `make test-all`, a tenth of it otherwise."""


def job(*argv: str, name: str = "work", seconds: float = 300) -> Job:
    ends = utc_text(datetime.now(UTC) + timedelta(seconds=seconds))
    return Job(id=name, argv=argv, folder=f"jobs/{name}", environment={}, ends_by_utc=ends)


def exited(host: SSHHost, name: str = "work") -> Callable[[], bool]:
    return lambda: host.state(name).status == "exited"


class TestCommands:
    def test_standard_input_is_closed(self, host: SSHHost) -> None:
        done = host.run(["cat"], timeout_s=30)
        assert (done.exit_code, done.stdout) == (0, "")

    def test_a_silent_command_is_ended_on_the_machine_at_its_limit(self, host: SSHHost) -> None:
        with pytest.raises(Waiting, match="was ended after 2 s"):
            host.run(["sleep", "86399"], timeout_s=2)
        assert b"86399" not in subprocess.run(
            ["ps", "-eo", "args"], capture_output=True, check=True
        ).stdout.replace(b"timeout", b"")  # fmt: skip

    def test_odd_words_arrive_as_they_are(self, host: SSHHost) -> None:
        words = ["a b", "'", '"', "$HOME", "`id`", "\\", "*", "ä"]
        done = host.run(["printf", "%s\\n", *words], timeout_s=30)
        assert done.stdout.splitlines() == words

    def test_a_flood_of_output_is_read_in_flat_memory(
        self, host: SSHHost, record_property: Callable[[str, object], None]
    ) -> None:
        host.facts()
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
        flood = f"yes 0123456789abcdef | head -c {FLOOD_BYTES}"
        done = host.run(["sh", "-c", flood], timeout_s=1200)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        seconds = time.monotonic() - began
        said = f"{FLOOD_BYTES} bytes of output in {seconds:.1f} s, {grown} KiB more memory"
        record_property("said", said)
        assert done.stdout.endswith("0123456789abcdef\n")
        assert grown < 64 * 1024, said


class TestJobs:
    def test_a_job_goes_on_when_sshd_dies_and_is_found_again(
        self, one: Rack, host: SSHHost
    ) -> None:
        host.start(job("sh", "-c", "echo begun; sleep 6; echo ended"))
        one.machines[0].stop()
        with pytest.raises(Unreachable):
            host.state("work")
        one.machines[0].start()
        wait_until(exited_patiently(host))
        state = host.state("work")
        assert (state.exit_code, state.reason) == (0, None)
        assert host.read("jobs/work/log") == b"begun\nended\n"
        assert host.read("jobs/work/log", offset=6) == b"ended\n"

    def test_two_gigabytes_of_log_stay_on_the_machine_and_are_read_by_offset(
        self, host: SSHHost
    ) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        host.start(job("sh", "-c", "head -c 2000000000 /dev/zero; echo the end"))
        wait_until(exited(host), 300)
        size = host.state("work").log_bytes
        assert size == 2_000_000_008
        assert host.read("jobs/work/log", offset=size - 8) == b"the end\n"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024

    def test_a_job_starts_once_and_its_input_is_closed(self, host: SSHHost) -> None:
        one = job("sh", "-c", "cat; echo once")
        host.start(one)
        host.start(one)
        wait_until(exited(host))
        assert host.read("jobs/work/log") == b"once\n"

    def test_stop_ends_the_whole_tree(self, host: SSHHost) -> None:
        host.start(job("sh", "-c", "sleep 86398 & sleep 86398"))
        state = host.stop("work", reason="the test says so")
        assert state.reason == "the test says so"
        shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
        assert b"86398" not in shown


def exited_patiently(host: SSHHost) -> Callable[[], bool]:
    def look() -> bool:
        try:
            return host.state("work").status == "exited"
        except Unreachable:
            return False

    return look
