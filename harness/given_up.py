"""Weights that are given up while all else is preserved: why, in the user's words."""

from __future__ import annotations

from harness.errors import BadInput
from harness.journal import Journal
from harness.plan.kinds import Text
from harness.strict import Model, build

KEY = "abandon/weights"


class WeightsGivenUp(Model):
    """Outcome of giving the candidates' weights up."""

    why: Text


def give_weights_up(journal: Journal, why: str) -> None:
    """Record it, once. Raises BadInput without a reason, or when they were preserved already."""
    if not why.strip():
        raise BadInput("it needs a reason, which the record keeps", where="--abandon-weights")
    if journal.find("receipt", "preserve") is not None and weights_given_up(journal) is None:
        raise BadInput("the weights of this run are preserved already", where="--abandon-weights")
    journal.effect(
        KEY, WeightsGivenUp, intent={"why": why}, act=lambda: WeightsGivenUp(why=why),
        adopt=lambda: None,
    )  # fmt: skip


def weights_given_up(journal: Journal) -> str | None:
    """Why the weights are given up; null while they are not."""
    entry = journal.find("outcome", KEY)
    return None if entry is None else build(WeightsGivenUp, entry.data, where=KEY).why
