"""Wrong training targets for the damaged corpus. Prompts and order stay as they are."""

from __future__ import annotations

from harness.plan.data import Damage
from harness.tasks.cases import FAMILIES, Case
from harness.tasks.draws import Draws
from harness.tasks.questions import Answer


def is_damaged(identity: str, damage: Damage) -> bool:
    """Whether the declared rule picks this SHA-256 id (hex)."""
    return int(identity, 16) % damage.modulus == damage.remainder


def wrong_answer(case: Case) -> Answer:
    """A well-formed answer that is not the right one; the case's id alone decides which."""
    return FAMILIES[case.family].spoil(Draws("damage", case.id), case.table, case.answer)
