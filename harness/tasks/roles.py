"""Dealing cases to roles so that no two roles, and no role twice, hold the same case."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

from harness.errors import BadInput
from harness.plan import Plan
from harness.plan.data import Tasks
from harness.tasks.cases import Case, draw_case
from harness.tasks.draws import Draws

CaseRole = Literal["test", "development", "train"]
TRIES = 200
"""Draws for one place in a role before the role counts as not fillable."""


def deal_cases(plan: Plan, earlier: Set[str] = frozenset()) -> dict[CaseRole, tuple[Case, ...]]:
    """The cases of every role; test first, so that a larger training set leaves it as it is.

    Development cases use the training wordings, which keeps the held-out ones unseen until the
    test. `earlier` is what cases of earlier cohorts ask (Case.content), which no case asks again.
    Raises BadInput when a role cannot be filled without repeating a case.
    """
    roles, tasks = plan.data.roles, plan.data.tasks
    taken: set[str] = set(earlier)
    return {
        "test": _deal(plan.seed, "test", roles.test, tasks, tasks.test_wordings, taken),
        "development": _deal(
            plan.seed, "development", roles.development, tasks, tasks.train_wordings, taken
        ),
        "train": _deal(plan.seed, "train", roles.train_tasks, tasks, tasks.train_wordings, taken),
    }


def _deal(
    seed: str,
    role: CaseRole,
    count: int,
    tasks: Tasks,
    wordings: tuple[int, ...],
    taken: set[str],
) -> tuple[Case, ...]:
    cases = []
    for index in range(count):
        turn, place = divmod(index, len(tasks.families))
        family = tasks.families[place]
        wording = _wording(seed, role, family, turn, wordings)
        absent = family == "lookup" and bool(tasks.absent_every)
        absent = absent and (turn + 1) % tasks.absent_every == 0
        for attempt in range(TRIES):
            case = draw_case(
                Draws(seed, role, index, attempt),
                family=family,
                wording=wording,
                rows=tasks.rows,
                absent=absent,
            )
            if case.content not in taken:
                break
        else:
            raise BadInput(
                f"the role '{role}' cannot have {count} different cases; "
                f"{index} were found with {tasks.rows} rows a table",
                where="plan#/data/roles",
            )
        taken.add(case.content)
        cases.append(case)
    return tuple(cases)


def _wording(seed: str, role: str, family: str, turn: int, wordings: tuple[int, ...]) -> int:
    """Wordings in equal shares, in a new random order every time round."""
    around, place = divmod(turn, len(wordings))
    return Draws(seed, role, "wordings", family, around).shuffled(wordings)[place]
