"""One task case: prompt, right answer and the id that both decide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from harness.plan.data import Family
from harness.tasks import filter, lookup, sort, total
from harness.tasks.draws import Draws
from harness.tasks.questions import Answer, FamilyRules
from harness.tasks.records import Table, draw_table, show_table
from harness.tasks.wordings import write_prompt
from trainer import contract

FAMILIES: dict[Family, FamilyRules] = {
    "lookup": lookup.RULES,
    "filter": filter.RULES,
    "total": total.RULES,
    "sort": sort.RULES,
}


@dataclass(frozen=True)
class Case:
    """A task. `id` is the SHA-256 of family, wording, prompt and answer as canonical JSON."""

    id: str
    family: Family
    wording: int
    table: Table
    asked: str
    prompt: str
    answer: Answer

    @cached_property
    def content(self) -> str:
        """The SHA-256 of what is asked, whatever the wording."""
        return contract.hash_of([self.family, self.asked, show_table(self.table)])


def draw_case(draws: Draws, *, family: Family, wording: int, rows: int, absent: bool) -> Case:
    """Draw a table of `rows` records and a question of the family about it."""
    table = draw_table(draws, rows)
    question = FAMILIES[family].ask(draws, table, absent)
    prompt = write_prompt(family, wording, question.asked, table)
    content = {"family": family, "wording": wording, "prompt": prompt, "answer": question.answer}
    return Case(
        id=contract.hash_of(content),
        family=family,
        wording=wording,
        table=table,
        asked=question.asked,
        prompt=prompt,
        answer=question.answer,
    )


def answer_text(answer: Answer) -> str:
    """The answer as a model is taught to write it: canonical JSON."""
    return contract.canonical(answer).decode()
