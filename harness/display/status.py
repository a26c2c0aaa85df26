"""Where a run stands, from its journal: what is done, what runs, what comes next. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.display import words
from harness.display.sanitize import clean
from harness.journal import Entry
from harness.receipts import StageName


def status_value(
    run: str, entries: Sequence[Entry], jobs: Sequence[str], deadline_utc: str
) -> dict[str, Any]:
    """The same as `status_tables`, for machines."""
    stages = _stages(entries)
    following = next((name for name, state, _ in stages if state == "next"), None)
    return {
        "run": run,
        "stages": {name: state for name, state, _ in stages},
        "next": following or "nothing",
        "running": list(jobs),
        "deadline_utc": deadline_utc or "not set",
        "attempts": _attempts(entries),
    }


def status_tables(
    run: str, entries: Sequence[Entry], jobs: Sequence[str], deadline_utc: str
) -> RenderableType:
    """Stages with their state and seconds, attempts, running jobs and the deadline."""
    table = Table(title=clean(run), title_justify="left", box=box.SIMPLE, pad_edge=False)
    for column in ("stage", "state", "time"):
        table.add_column(column)
    for name, state, seconds in _stages(entries):
        table.add_row(name, state, "" if seconds is None else words.seconds(seconds))
    lines = [f"attempt {key}: {outcome}" for key, outcome in _attempts(entries).items()]
    lines.append(f"running: {', '.join(jobs) or 'nothing'}")
    lines.append(f"deadline: {deadline_utc or 'not set'}")
    return Group(table, *(Text(clean(line)) for line in lines))


def _stages(entries: Sequence[Entry]) -> list[tuple[str, str, float | None]]:
    done = {entry.key: entry.data for entry in entries if entry.kind == "receipt"}
    never = _never_run(done)
    rows: list[tuple[str, str, float | None]] = []
    waiting = False
    for name in get_args(StageName):
        if name in done:
            state = "ended early" if done[name].get("incomplete") else "done"
            rows.append((name, state, float(done[name]["seconds"])))
        elif name in never:
            rows.append((name, words.NOT_RUN, None))
        else:
            rows.append((name, "later" if waiting else "next", None))
            waiting = True
    return rows


def _never_run(done: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Stages that will not come: all that are left of a run that was given up, and what measures
    in one that had to end early (harness.pipeline: only the stages that close it follow)."""
    names: tuple[str, ...] = get_args(StageName)
    if done.get("release", {}).get("basis") == "abandoned":
        return frozenset(names) - ({"terminate"} if "provision" in done else set())
    if any(receipt.get("incomplete") for receipt in done.values()):
        return frozenset(names[: names.index("decide")])
    return frozenset()


def _attempts(entries: Sequence[Entry]) -> dict[str, str]:
    prefix = "attempt/"
    found = {e.key: "running" for e in entries if e.kind == "intent" and e.key.startswith(prefix)}
    for entry in entries:
        if entry.kind == "outcome" and entry.key.startswith(prefix):
            found[entry.key] = str(entry.data["outcome"])
    return {key.removeprefix(prefix): outcome for key, outcome in found.items()}
