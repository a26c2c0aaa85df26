"""Studies over real sshd that write gigabytes, and one whose time is over before it trains."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness.receipts import PreflightReceipt, PreserveReceipt, TerminateReceipt, TrainReceipt
from harness.results import Results
from harness.strict import load_file
from tests.ssh.conftest import MakeRack, Rack
from tests.ssh.test_faults import wait_for
from tests.study.conftest import Desk, make_desk_in
from tests.study.test_incomplete import LEAPING
from tests.toy_plan import PLAN, toy_after

FLOOD_BYTES = 2_000_000_000 if os.environ.get("HARNESS_ALL_KILLS") else 200_000_000
"""Two gigabytes in `make test-all`, a tenth of it otherwise; both are more than is ever fetched."""
FLOOD = f"""
if task == "train":
    import os
    piece = b"0123456789abcde\\n" * 65536
    for _ in range({FLOOD_BYTES} // len(piece) + 1):
        os.write(1, piece)
"""
MOST_KIB = 512 * 1024
"""Of the operator's process, whatever an arm writes."""


def test_an_arm_that_writes_gigabytes_leaves_the_operators_memory_flat(
    make_rack: MakeRack, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    rack = make_rack(1)
    decisions = [{**PLAN["decisions"][1], "candidate": "single"}]
    arms = [PLAN["arms"][0]]
    trainer = toy_after(tmp_path, FLOOD)
    desk = make_desk_in(tmp_path, trainer=trainer, arms=arms, decisions=decisions)
    began = time.monotonic()
    with open(tmp_path / "said", "w+b") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "harness", "run", str(desk.plan), "--hosts",
             str(rack.folder / "hosts.json")],
            cwd=desk.folder, env=desk.environment(), stdout=said, stderr=said,
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, (tmp_path / "said").read_text()
    there = wait_for(rack, 0, "jobs/train.single.1/log").stat().st_size
    train = load_file(TrainReceipt, desk.latest / "receipts" / "train.json")
    kept = next(each for each in train.arms[0].attempts[0].logs if each.name.endswith("host-0.log"))
    record_property(
        "said",
        f"an arm wrote {there} bytes, {kept.bytes} of them are kept; the study took "
        f"{time.monotonic() - began:.1f} s and {used.ru_maxrss // 1024} MiB at most",
    )
    assert there > FLOOD_BYTES
    assert kept.bytes < 65 << 20, "its beginning and its end"
    assert used.ru_maxrss < MOST_KIB


def test_the_point_of_no_return_in_preflight_stops_what_runs_there_and_ends_the_run(
    rack: Rack, desk: Desk
) -> None:
    """The operator's clock leaps once the ranks' check is about to start."""
    done = subprocess.run(
        [sys.executable, str(LEAPING), "toy/2*/work/recipes/preflight.check.1.json", "run",
         str(desk.plan), "--hosts", str(rack.folder / "hosts.json")],
        cwd=desk.folder, env=desk.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode == 4, done.stderr
    assert "not whole" in " ".join(done.stderr.split())
    seen = load_file(PreflightReceipt, desk.latest / "receipts" / "preflight.json")
    assert seen.incomplete is not None and seen.incomplete.because == "deadline"
    assert {line.host for line in seen.lines} >= {"host-0", "host-1"}, "what was seen is kept"
    assert not (desk.latest / "receipts" / "train.json").exists(), "'not run', not empty"
    preserved = load_file(PreserveReceipt, desk.latest / "receipts" / "preserve.json")
    assert preserved.objects and all(each.ok for each in preserved.objects)
    results = load_file(Results, desk.latest / "results.json")
    assert results.incomplete is not None
    assert results.incomplete.arms_not_run == ("single", "pair")
    end = load_file(TerminateReceipt, desk.latest / "receipts" / "terminate.json")
    assert end.residue == ()
    for slot in (0, 1):
        started = rack.fleets(slot)[0].glob(f"hosts/host-{slot}/jobs/*/started.json")
        assert all((path.parent / "exit.json").exists() for path in started)
    assert desk.harness("verify", str(desk.latest)).code == 0
