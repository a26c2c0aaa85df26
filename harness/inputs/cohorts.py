"""Cohorts of tasks: a plan's own, and those of the study that its parent comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BadInput, Refused, command
from harness.exposure import ID_DIGITS, Ledger
from harness.plan import LoadedPlan, Plan, load_plan
from harness.plan.parent import Parent
from harness.tasks.cases import Case
from harness.tasks.roles import CaseRole, deal_cases


@dataclass(frozen=True)
class Cohort:
    """All cases of one plan, by role, and the cohort of its parent's study."""

    cases: Mapping[CaseRole, tuple[Case, ...]]
    earlier: Cohort | None

    def contents(self) -> set[str]:
        """What its cases ask, whatever the wording, with those of every earlier cohort."""
        own = {case.content for cases in self.cases.values() for case in cases}
        return own | (self.earlier.contents() if self.earlier else set())


def parent_plan(parent: Parent, folder: Path) -> LoadedPlan:
    """The plan that the parent comes from; `folder` is that of the plan that names it. Raises
    BadInput when the file is another plan than the one that is named."""
    loaded = load_plan(folder / parent.plan)
    if (loaded.hash, loaded.plan.name) != (parent.plan_hash, parent.study):
        raise BadInput(
            f"is the plan '{loaded.plan.name}' of the hash {loaded.hash}, and the parent is of "
            f"'{parent.study}' of the hash {parent.plan_hash}",
            where=str(loaded.path),
        )
    if parent.candidate not in loaded.plan.arm_names:
        raise BadInput(f"has no arm called '{parent.candidate}'", where=str(loaded.path))
    return loaded


def deal_cohort(plan: Plan, folder: Path) -> Cohort:
    """Deal a plan's cases: none asks what a case of an earlier cohort asks.

    `folder` is the one that the plan's paths are relative to.
    """
    earlier: Cohort | None = None
    if plan.parent is not None:
        loaded = parent_plan(plan.parent, folder)
        earlier = deal_cohort(loaded.plan, loaded.folder)
    return Cohort(deal_cases(plan, earlier.contents() if earlier else set()), earlier)


def prove_earlier(parent: Parent, earlier: Cohort, ledger: Ledger) -> None:
    """The tasks that were dealt again are those that the parent's study committed to.

    Raises Refused when this repository holds no commitment of that plan, or one to other cases.
    """
    where = "plan#/parent/plan_hash"
    known = [one for one in ledger.commitments if one.plan_hash == parent.plan_hash]
    if not known:
        raise Refused(
            f"no prepared inputs of '{parent.study}' are committed in this repository, so nothing "
            "proves which tasks its candidate has seen; merge its branch or its evidence",
            where=where,
            next_command=f"git merge harness/{parent.run}",
        )
    for role, cases in earlier.cases.items():
        ours = {case.id[:ID_DIGITS] for case in cases}
        if any(ours != set(one.exposure.get(role, ())) for one in known):
            raise Refused(
                f"the {role} cases that are dealt from the plan of '{parent.study}' are not those "
                "that it committed to",
                where=where,
                next_command=command("check", parent.plan),
            )


def earlier_tasks(earlier: Cohort, count: int, where: str) -> tuple[Case, ...]:
    """The first `count` training tasks of a cohort."""
    return _first(earlier.cases["train"], count, where, "training tasks")


def earlier_tests(earlier: Cohort, count: int, where: str) -> tuple[Case, ...]:
    """The first `count` test cases of a cohort, its families in turn."""
    return _first(earlier.cases["test"], count, where, "test cases")


def _first(cases: Iterable[Case], count: int, where: str, what: str) -> tuple[Case, ...]:
    found = tuple(cases)
    if len(found) < count:
        raise BadInput(f"the parent's study has {len(found)} {what}, not {count}", where=where)
    return found[:count]
