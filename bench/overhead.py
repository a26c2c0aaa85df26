"""What the harness adds to a training process: an arm's start to end beside `launch` by hand.

    python bench/overhead.py [toy|real] [ROUNDS]

A study of three equal arms on one worker of this computer runs until its arms are done and is then
stopped. An arm took from the intent to start it (in the journal) to its recorded end: port, boot
and deadlines looked at, recipe sent, job started, followed, log kept. Then the same command lines
(job.json of each arm) run by hand with other output folders, in turns, ROUNDS times each. 'toy'
trains without torch for about 30 s; 'real' is the bundled trainer with a tiny model.
"""

from __future__ import annotations

import copy
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.clock import parse_utc
from harness.journal import read_entries
from tests.study.conftest import Desk, make_desk_in
from tests.study.test_real_trainer import real
from tests.toy_plan import PLAN, toy_with

KILLED = Path(__file__).resolve().parents[1] / "tests" / "faults" / "killed.py"
ARMS = ("one", "two", "three")
UPDATES = {"toy": 30, "real": 300}
MOST_S, MOST_SHARE = 5.0, 0.03
"""The target: what is added is at most one of these."""


def make_desk(kind: str, folder: Path) -> Desk:
    """A plan of three equal arms."""
    changes: dict[str, Any] = real() if kind == "real" else {}
    changes["arms"] = [{**copy.deepcopy(PLAN["arms"][0]), "name": name} for name in ARMS]
    changes["decisions"] = [{**PLAN["decisions"][0], "candidate": "two"}]
    changes["recipe"] = {**PLAN["recipe"], "updates": UPDATES[kind]}
    if kind == "toy":
        changes["trainer"] = toy_with(folder, TOY_UPDATE_SECONDS="1")
    return make_desk_in(folder, **changes)


def train(desk: Desk, folder: Path) -> None:
    """Run the study until the arms are trained; the operator is killed after every stage."""
    memory = folder / "memory"
    argv = [sys.executable, str(KILLED), "stage", str(memory), str(desk.plan), str(desk.runs)]
    while not (memory.exists() and "receipt train" in memory.read_text().split("\n")):
        done = subprocess.run(
            argv, cwd=desk.folder, env=desk.environment(), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode != -signal.SIGKILL:
            sys.exit(f"the study stopped: {done.stderr[-2000:]}")


def by_harness(desk: Desk) -> list[float]:
    """Seconds of each arm's attempt, from its terms (asked first) to its recorded end."""
    entries, _ = read_entries(desk.latest / "journal.jsonl")
    at = {(entry.kind, entry.key): entry.utc for entry in entries}
    found = []
    for arm in ARMS:
        key = f"attempt/train/{arm}/1"
        moments = [parse_utc(at[kind, key]) for kind in ("intent", "outcome")]
        found.append((moments[1] - moments[0]).total_seconds())
    return found


def by_hand(desk: Desk, arm: str, turn: int) -> float:
    """Seconds of the same command line, started from here and waited for."""
    (path,) = desk.latest.glob(f"fleet/hosts/*/jobs/train.{arm}.1/job.json")
    job = json.loads(path.read_text())
    argv = [str(word) for word in job["argv"]]
    place = argv.index("--out") + 1
    argv[place] += f".hand-{turn}"
    given = desk.environment().items()
    known = {name: value for name, value in given if not name.startswith("PYTHON")}
    began = time.monotonic()
    done = subprocess.run(
        argv, cwd=job["cwd"], env={**known, **job["environment"]}, check=False,
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    seconds = time.monotonic() - began
    if done.returncode:
        sys.exit(f"by hand it failed: {done.stderr[-2000:]}")
    return seconds


def main() -> None:
    """Measure and print."""
    kind = sys.argv[1] if len(sys.argv) > 1 else "toy"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        desk = make_desk(kind, folder)
        train(desk, folder)
        ours = by_harness(desk)
        hand = [by_hand(desk, arm, turn) for turn in range(rounds) for arm in ARMS]
        desk.run("--abandon", "a benchmark")
    added = statistics.median(ours) - statistics.median(hand)
    share = added / statistics.median(hand)
    print(f"{kind}: arms {', '.join(f'{each:.2f}' for each in ours)} s; "
          f"by hand {', '.join(f'{each:.2f}' for each in hand)} s")  # fmt: skip
    within = added <= MOST_S or share <= MOST_SHARE
    print(f"medians differ by {added:.2f} s, {100 * share:.1f} % of the process; the target "
          f"(3 % or 5 s) is {'met' if within else 'missed'}")  # fmt: skip


if __name__ == "__main__":
    main()
