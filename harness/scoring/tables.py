"""Tables of scored cases: correct answers by family and wording, and paired flips."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.statistics.counts import PairedCounts


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One scored case of one candidate (or of the reference).

    Errors: ValueError if a field has the wrong type, or if the case is correct and not valid JSON.
    """

    case_id: str
    family: str
    wording: int
    """Number of the prompt's wording."""
    correct: bool
    valid_json: bool

    def __post_init__(self) -> None:
        for name, kind in (("case_id", str), ("family", str), ("wording", int)):
            if type(getattr(self, name)) is not kind:
                raise ValueError(f"{name} of case {self.case_id!r} is not a {kind.__name__}")
        for name in ("correct", "valid_json"):
            if type(getattr(self, name)) is not bool:
                raise ValueError(f"{name} of case {self.case_id!r} is not a bool")
        if self.correct and not self.valid_json:
            raise ValueError(f"case {self.case_id!r} is marked correct and not valid JSON")


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over one group of cases. Unit: cases; total is at least 1."""

    total: int
    correct: int
    valid_json: int

    @property
    def accuracy(self) -> float:
        """Share of cases that are correct, 0 to 1."""
        return self.correct / self.total

    @property
    def valid_json_share(self) -> float:
        """Share of cases whose answer is a strict JSON object, 0 to 1."""
        return self.valid_json / self.total


@dataclass(frozen=True, slots=True)
class Table:
    """How one candidate did. Groups are in ascending order; each case is in one of each kind."""

    overall: Tally
    by_family: tuple[tuple[str, Tally], ...]
    by_wording: tuple[tuple[int, Tally], ...]


@dataclass(frozen=True, slots=True)
class Flips:
    """Case ids by who answered correctly, each tuple in ascending order."""

    both: tuple[str, ...]
    gained: tuple[str, ...]
    """Only the candidate is correct."""
    lost: tuple[str, ...]
    """Only the reference is correct."""
    neither: tuple[str, ...]

    @property
    def counts(self) -> PairedCounts:
        """The four counts, for the statistics."""
        return PairedCounts(
            both=len(self.both),
            gained=len(self.gained),
            lost=len(self.lost),
            neither=len(self.neither),
        )


def tabulate(rows: Iterable[CaseRow]) -> Table:
    """Count correct and valid answers overall, by family and by wording.

    Errors: ValueError if there is no row, or if a case id appears twice.
    """
    cases = list(_by_id(rows, "the table").values())
    families = sorted({row.family for row in cases})
    wordings = sorted({row.wording for row in cases})
    return Table(
        overall=_tally(cases),
        by_family=tuple((f, _tally([r for r in cases if r.family == f])) for f in families),
        by_wording=tuple((w, _tally([r for r in cases if r.wording == w])) for w in wordings),
    )


def compare(candidate: Iterable[CaseRow], reference: Iterable[CaseRow]) -> Flips:
    """Pair two candidates case by case.

    Errors: ValueError if a side is empty or has a case id twice, if a case id is missing on one
    side (the first in ascending order is named), or if a shared id has another family or wording.
    """
    ours, theirs = _by_id(candidate, "the candidate"), _by_id(reference, "the reference")
    _check_same_cases(ours, theirs)
    found: dict[tuple[bool, bool], list[str]] = {
        (True, True): [],
        (True, False): [],
        (False, True): [],
        (False, False): [],
    }
    for case_id in sorted(ours):
        found[ours[case_id].correct, theirs[case_id].correct].append(case_id)
    return Flips(
        both=tuple(found[True, True]),
        gained=tuple(found[True, False]),
        lost=tuple(found[False, True]),
        neither=tuple(found[False, False]),
    )


def _by_id(rows: Iterable[CaseRow], side: str) -> dict[str, CaseRow]:
    found: dict[str, CaseRow] = {}
    for row in rows:
        if row.case_id in found:
            raise ValueError(f"case {row.case_id!r} appears twice in {side}")
        found[row.case_id] = row
    if not found:
        raise ValueError(f"{side} has no cases")
    return found


def _check_same_cases(ours: dict[str, CaseRow], theirs: dict[str, CaseRow]) -> None:
    unpaired = min(ours.keys() ^ theirs.keys(), default=None)
    if unpaired is not None:
        side = "reference" if unpaired in ours else "candidate"
        raise ValueError(f"case {unpaired!r} is missing from the {side}, so nothing is paired")
    for case_id in sorted(ours):
        for name in ("family", "wording"):
            if getattr(ours[case_id], name) != getattr(theirs[case_id], name):
                raise ValueError(f"case {case_id!r} has two different values of {name}")


def _tally(rows: Sequence[CaseRow]) -> Tally:
    return Tally(
        total=len(rows),
        correct=sum(row.correct for row in rows),
        valid_json=sum(row.valid_json for row in rows),
    )
