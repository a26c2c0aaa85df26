"""The journal: an append-only record of a run, with intent before each outside effect.

Every line is one canonical JSON object that names the hash of the line before it. A line counts
once it is whole and on disk; what a crash left of a torn last line is cut off and said.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from harness.clock import Clock
from harness.errors import BadInput, Refused, Waiting
from harness.plan.kinds import CountOrZero
from harness.strict import Model, build, load
from trainer import contract

M = TypeVar("M", bound=Model)
FIRST = "0" * 64


class Entry(Model):
    """One line of journal.jsonl."""

    seq: CountOrZero
    kind: Literal["intent", "outcome", "receipt", "note"]
    key: str
    """What the entry is about; an outcome answers the intent of the same key."""
    data: dict[str, Any]
    utc: str
    monotonic_ns: str
    previous: str
    """Hash of the line before; 64 zeros for the first."""


class Journal:
    """One writer at a time. Raises Waiting when another process drives the same thing, which `of`
    names to a person."""

    def __init__(self, path: Path, clock: Clock, *, of: str = "run") -> None:
        self.path = path
        self._clock = clock
        self._writing = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = open(path.with_suffix(".lock"), "a")  # noqa: SIM115 - held while driving
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Waiting(
                f"another process drives this {of}",
                where=str(path.parent),
                next_command="harness status",
            ) from None
        self.entries, whole = read_entries(path)
        self._handle = open(path, "ab")  # noqa: SIM115 - open for the run's life
        if whole < path.stat().st_size:
            self._handle.truncate(whole)
            self.note("torn-line", {"cut_at_byte": whole})
        contract.sync_folder(path.parent)

    def close(self) -> None:
        """Let another process drive the run."""
        self._handle.close()
        self._lock.close()

    def append(self, kind: Literal["intent", "outcome", "receipt", "note"], key: str,
               data: dict[str, Any]) -> Entry:  # fmt: skip
        """Write one entry; it is on disk when this returns. Safe for several threads."""
        with self._writing:
            return self._append(kind, key, data)

    def _append(self, kind: Literal["intent", "outcome", "receipt", "note"], key: str,
                data: dict[str, Any]) -> Entry:  # fmt: skip
        previous = _line_hash(self.entries[-1]) if self.entries else FIRST
        entry = Entry(
            seq=len(self.entries),
            kind=kind,
            key=key,
            data=data,
            utc=self._clock.utc(),
            monotonic_ns=str(int(self._clock.monotonic() * 1e9)),
            previous=previous,
        )
        self.write(contract.canonical(entry.to_json()) + b"\n")
        self.entries.append(entry)
        return entry

    def write(self, line: bytes) -> None:
        """Put bytes on disk: write, flush, fsync."""
        try:
            self._handle.write(line)
            self._handle.flush()
            os.fsync(self._handle.fileno())
        except OSError as error:
            raise Waiting(
                f"the journal cannot be written ({error.strerror}); nothing further was started",
                where=str(self.path),
                next_command="free some disk space, then run the same command again",
            ) from None

    def note(self, key: str, data: dict[str, Any]) -> None:
        """Something worth keeping that is no effect."""
        self.append("note", key, data)

    def find(self, kind: str, key: str) -> Entry | None:
        """The newest entry of that kind and key."""
        for entry in reversed(self.entries):
            if entry.kind == kind and entry.key == key:
                return entry
        return None

    def effect(
        self,
        key: str,
        outcome: type[M],
        *,
        intent: dict[str, Any],
        act: Callable[[], M],
        adopt: Callable[[], M | None],
    ) -> M:
        """Do an outside effect once, whatever kills this process.

        The intent is on disk before `act` runs. When an earlier process left an intent without an
        outcome, `adopt` looks at the outside first and returns what exists, or None if nothing
        does. The outcome of an effect that is already recorded is returned as it was.
        """
        recorded = self.find("outcome", key)
        if recorded is not None:
            return build(outcome, recorded.data, where=f"{self.path} entry {recorded.seq}")
        result: M | None = None
        if self.find("intent", key) is None:
            self.append("intent", key, intent)
        else:
            result = adopt()
        if result is None:
            result = act()
        self.append("outcome", key, result.to_json())
        return result


def read_entries(path: Path) -> tuple[list[Entry], int]:
    """Whole entries of a journal and the byte where they end.

    Raises Refused when a line before the last is damaged or the chain of hashes is broken.
    """
    if not path.exists():
        return [], 0
    entries: list[Entry] = []
    whole = 0
    previous = FIRST
    data = path.read_bytes()
    while whole < len(data):
        end = data.find(b"\n", whole)
        if end < 0:
            break
        line = data[whole:end]
        try:
            entry = load(Entry, line, where=f"{path} line {len(entries) + 1}")
        except BadInput as error:
            raise Refused(
                f"this line of the journal is damaged or not ours ({error.what})",
                where=error.where,
            ) from None
        if entry.previous != previous or entry.seq != len(entries):
            raise Refused(
                "the chain of hashes is broken at this line: the journal was changed",
                where=f"{path} line {len(entries) + 1}",
            )
        previous = contract.sha256(line)
        entries.append(entry)
        whole = end + 1
    return entries, whole


def _line_hash(entry: Entry) -> str:
    return contract.sha256(contract.canonical(entry.to_json()))
