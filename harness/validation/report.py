"""What independent checks report: how often each was made, and every disagreement."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.contract import ContractError, read_json, read_lines

MOST_OF_ONE_CHECK = 20
"""Disagreements of one check that are written out; the rest are counted in one sentence."""


@dataclass(frozen=True)
class Check:
    """One kind of check and how many times it was made."""

    name: str
    count: int


@dataclass(frozen=True)
class ValidationReport:
    """Checks in the order they were first made. Agreement is an empty list of disagreements."""

    checks: tuple[Check, ...]
    disagreements: tuple[str, ...]


def merge(reports: Iterable[ValidationReport]) -> ValidationReport:
    """One report of many: counts of the same check are added."""
    totals: Counter[str] = Counter()
    sentences: list[str] = []
    for report in reports:
        for check in report.checks:
            totals[check.name] += check.count
        sentences += report.disagreements
    return ValidationReport(tuple(Check(*pair) for pair in totals.items()), tuple(sentences))


@dataclass
class Findings:
    """Collects outcomes while checks run."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[str]] = field(default_factory=dict)

    def expect(self, name: str, fine: bool, otherwise: str) -> bool:
        """Count one check; `otherwise` is the sentence for when it fails."""
        self.counts[name] += 1
        if not fine:
            self.faults.setdefault(name, []).append(otherwise)
        return fine

    def lines(self, path: Path, *fields: str) -> list[dict[str, Any]]:
        """The rows of a file that have these fields, an id being text. An empty or unreadable
        file, or a row without the fields, is a disagreement."""
        try:
            rows = read_lines(path)
            fault = ""
        except (OSError, ContractError) as error:
            rows, fault = [], f"{path.name} cannot be read: {error}"
        self.expect("readable files", not fault, fault)
        self.expect("files with rows", bool(rows) or bool(fault), f"{path.name} is empty")
        whole = [row for row in rows if isinstance(row, dict) and row.keys() >= {*fields}]
        whole = [row for row in whole if "id" not in fields or isinstance(row["id"], str)]
        odd = len(rows) - len(whole)
        self.expect("fields of rows", not odd, f"{path.name} has {odd} rows without {fields}")
        return whole

    def value(self, path: Path) -> Any:
        """A file's JSON value, or None with a disagreement."""
        try:
            found, fault = read_json(path), ""
        except (OSError, ContractError) as error:
            found, fault = None, f"{path.name} cannot be read: {error}"
        self.expect("readable files", not fault, fault)
        return found

    @contextmanager
    def form(self, where: str) -> Iterator[None]:
        """What is read inside has the form that the contract gives it; else a disagreement."""
        fault = ""
        try:
            yield
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as bad:
            fault = f"{where} does not have the form of the contract ({type(bad).__name__}: {bad})"
        self.expect("rows of the right form", not fault, fault)

    def report(self) -> ValidationReport:
        """Everything so far."""
        sentences: list[str] = []
        for name, faults in self.faults.items():
            sentences += faults[:MOST_OF_ONE_CHECK]
            if len(faults) > MOST_OF_ONE_CHECK:
                sentences.append(f"{name}: {len(faults) - MOST_OF_ONE_CHECK} more disagreements")
        return ValidationReport(
            tuple(Check(*pair) for pair in self.counts.items()), tuple(sentences)
        )


def same(one: Any, two: Any) -> bool:
    """Equal as JSON, so that 1, 1.0 and true are three different values."""
    return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
