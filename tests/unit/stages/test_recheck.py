"""After the arms a failed check is said and stops nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from harness.errors import Waiting
from harness.hosts.protocol import Host, JobState, Unreachable
from harness.receipts import Line
from harness.stages.recheck import notes_of, tried


class There:
    """As much of a host as is asked whether it answers."""

    def __init__(self, name: str, *, answers: bool) -> None:
        self.name, self._answers = name, answers

    def state(self, job: str) -> JobState:
        if not self._answers:
            raise Unreachable("the host does not answer", where=self.name)
        return JobState(id=job, status="absent")


def pair(*answers: bool) -> tuple[Host, ...]:
    return tuple(cast(Host, There(f"host-{i}", answers=each)) for i, each in enumerate(answers))


def line(ok: bool, check: str = "all-reduce") -> Line:
    return Line(host="host-1", check=check, observed="sum wrong", required="2 workers", ok=ok)


def failing(error: Exception) -> Iterator[Line]:
    yield line(True)
    raise error


def test_a_check_that_fails_after_the_arms_is_said_and_stops_nothing() -> None:
    lines = tuple(tried(pair(True, True), iter([line(True), line(False)])))
    assert notes_of(lines) == ("After the arms, host-1: all-reduce: sum wrong (needed: 2 workers)",)


def test_a_check_that_cannot_be_made_is_said() -> None:
    looks = failing(Waiting("the check failed 2 of 2 attempts"))
    lines = tuple(tried(pair(True, True), looks))
    assert [each.ok for each in lines] == [True, False]
    assert "it could not be made: the check failed 2 of 2 attempts" in notes_of(lines)[0]


def test_a_host_that_is_away_is_said_while_another_answers() -> None:
    lines = tuple(tried(pair(True, False), failing(Unreachable("away", where="host-1"))))
    assert not lines[-1].ok


def test_when_no_host_answers_it_is_this_side_that_is_cut_off() -> None:
    with pytest.raises(Unreachable):
        tuple(tried(pair(False, False), failing(Unreachable("away", where="host-1"))))


def test_what_is_right_is_said_too() -> None:
    (said,) = notes_of((line(True),))
    assert said.startswith("Checked again after the arms")
    (said,) = notes_of((line(True), line(True, "allowance exceeded on lo")))
    assert "no network allowances are kept there" in said
