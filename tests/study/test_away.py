"""A study on a machine without a network: parcels there, a run that is stopped and goes on, and
evidence, commits and records back; the weights stay there, which the record says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.study.conftest import TOP, MakeDesk

WHY = "they do not fit what may be brought back"
STEPS = (f"run plans/toy/plan.json --local --abandon-weights '{WHY}'", "keep toy")

EARLIER = {
    "schema": "harness/development/1", "run": "develop-1", "plan": "toy", "plan_hash": "a" * 64,
    "started_utc": "2026-11-29T20:15:01.123456Z", "recipe": {}, "train_seconds": {}, "models": [],
}  # fmt: skip
"""An attempt that was made before, somewhere else."""


def away(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command of either half. There, harness comes from this tree, as if it had been sent."""
    return subprocess.run(
        [sys.executable, "-m", "away", *arguments],
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(TOP)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_study_goes_there_is_stopped_goes_on_and_comes_back(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    desk.git("add", "plans")
    desk.git("-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", "the plan")
    developed = desk.folder / "runs" / "toy" / "develop-1" / "development.json"
    developed.parent.mkdir(parents=True)
    developed.write_text(json.dumps(EARLIER))
    packed = away(desk.folder, "pack", str(desk.plan), "--repository-only")
    assert packed.returncode == 0, packed.stderr
    there, out = tmp_path / "there", tmp_path / "out"
    taken = away(desk.folder, "take", "parcels/1", "--at", str(there))
    assert taken.stdout == "all parcels are here\n", taken.stderr
    assert (there / "clone" / "runs" / "toy" / "develop-1" / "development.json").is_file()

    going = ("go", "--at", str(there), "--out", str(out))
    stopped = away(tmp_path, *going, "--seconds", "0.5", *STEPS)
    assert stopped.returncode == 4, stopped.stderr
    for _ in range(2):
        done = away(tmp_path, *going, "--seconds", "500", *STEPS)
        assert done.returncode == 0, done.stderr
    assert "done before: harness run" in done.stderr
    assert len(list((there / "clone" / "runs" / "toy").glob("2*"))) == 1

    # A later commit is sent; what was made before it still comes back.
    desk.git("-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", "later",
             "--allow-empty")  # fmt: skip
    again = away(desk.folder, "pack", str(desk.plan), "--repository-only", "--into", "parcels/r2")
    assert again.returncode == 0, again.stderr
    away(desk.folder, "take", "parcels/r2/1", "--at", str(there))
    assert away(tmp_path, *going).returncode == 0

    back = away(desk.folder, "unpack", str(out))
    assert back.returncode == 0, back.stderr
    (run,) = desk.runs.glob("toy/2*")
    branch = f"harness/{run.name}"
    assert f"git merge {branch}" in back.stdout
    desk.git("merge-base", "--is-ancestor", "HEAD~1", branch)
    names = desk.git("diff", "--name-only", "HEAD~1", branch).split()
    assert names == ["plans/toy/prepared.json", f"plans/toy/runs/{run.name}/selection.json"]
    assert not (run / "fleet").exists() and (run / "journal.jsonl").is_file()

    closing = json.loads((desk.folder / "evidence" / "toy" / "closing.json").read_bytes())
    said(closing)
    verified = desk.harness("verify", "evidence/toy")
    assert verified.code == 0, verified.err
    assert "they are not kept, their roots are" in " ".join(verified.out.split())
    page = (desk.folder / "evidence" / "toy" / "report" / "index.html").read_text()
    assert f"By an explicit abandonment the weights of 2 candidate(s) are not kept: {WHY}" in page
    again = away(desk.folder, "unpack", str(out))
    assert "(the same as before)" in again.stdout, again.stderr


def said(closing: Any) -> None:
    """What the closing record says of weights."""
    release, kept = closing["release"], closing["preservation"]
    assert release["basis"] == "abandoned"
    assert release["why"].startswith(f"the weights of 2 candidate(s) are not kept: {WHY};")
    assert [line.split(":")[0] for line in kept["not_kept"]] == ["single", "pair"]
    assert all("parameter root " in line for line in kept["not_kept"])
    assert kept["objects"] > 10 and closing["residue"] == []
