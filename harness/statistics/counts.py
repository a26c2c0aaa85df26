"""The four counts of a paired comparison, and the checks that all statistics share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Above this a count no longer fits a double, and nothing that Harness scores comes near it.
MAX_COUNT = 2**53


def check_count(name: str, value: int) -> None:
    """Refuse what is not a number of cases.

    Errors: ValueError if `value` is not an int (a bool is not one), negative, or over MAX_COUNT.
    """
    if type(value) is not int:
        raise ValueError(f"{name} must be an int, got {type(value).__name__}")
    if not 0 <= value <= MAX_COUNT:
        raise ValueError(f"{name} must be between 0 and 2**53 cases")


def check_same_length(candidate: Sequence[object], reference: Sequence[object]) -> int:
    """Return the number of pairs in two aligned sequences.

    Errors: ValueError if they are empty or differ in length.
    """
    if len(candidate) != len(reference):
        raise ValueError(
            f"candidate has {len(candidate)} cases and reference {len(reference)}: not paired"
        )
    if len(candidate) == 0:
        raise ValueError("there are no cases to compare")
    return len(candidate)


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """Every case of a comparison, by who answered it correctly. Unit: cases.

    Errors: ValueError if a count is not a non-negative int or if there is no case at all.
    """

    both: int
    """Candidate and reference are both correct."""
    gained: int
    """Only the candidate is correct."""
    lost: int
    """Only the reference is correct."""
    neither: int
    """Neither is correct."""

    def __post_init__(self) -> None:
        for name in ("both", "gained", "lost", "neither"):
            check_count(name, getattr(self, name))
        if self.n == 0:
            raise ValueError("there are no cases to compare")

    @property
    def n(self) -> int:
        """All cases."""
        return self.both + self.gained + self.lost + self.neither

    @property
    def discordant(self) -> int:
        """Cases that exactly one of the two answered correctly."""
        return self.gained + self.lost

    def swapped(self) -> PairedCounts:
        """Return the same cases with candidate and reference in each other's role."""
        return PairedCounts(self.both, self.lost, self.gained, self.neither)


def count_pairs(candidate: Sequence[bool | int], reference: Sequence[bool | int]) -> PairedCounts:
    """Count aligned per-case correctness (0 or 1, False or True).

    Errors: ValueError if the sequences are empty, differ in length, or hold any other value.
    """
    n = check_same_length(candidate, reference)
    flips = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for index in range(n):
        pair = _correct("candidate", candidate, index), _correct("reference", reference, index)
        flips[pair] += 1
    return PairedCounts(
        both=flips[True, True],
        gained=flips[True, False],
        lost=flips[False, True],
        neither=flips[False, False],
    )


def _correct(name: str, values: Sequence[bool | int], index: int) -> bool:
    value = values[index]
    if value == 1:
        return True
    if value == 0:
        return False
    raise ValueError(f"{name} case {index} is not 0 or 1")
