"""selection.json: the commitment that names all candidates together, before any is scored."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.plan.kinds import Sha256
from harness.plan.parent import PARENT
from harness.plan.plan import REFERENCE
from harness.store.protocol import Artifact
from harness.strict import Model


class Selected(Model):
    """One model by its parameter root and its files."""

    parameter_root: Sha256
    files: tuple[Artifact, ...]


class Selection(Model):
    """selection.json."""

    schema_: Literal["harness/selection/1"] = Field(alias="schema")
    plan: str
    plan_hash: Sha256
    identity: Sha256
    run: str
    reference: Selected
    candidates: dict[str, Selected]
    """By arm, every arm of the plan."""
    parent: Selected | None = None
    """The candidate of an earlier study that arms started from; absent where the plan has none."""
    serve: str | None = None
    """The candidate to serve, as the plan says."""

    def named(self) -> dict[str, Selected]:
        """Every model that is scored, by name: reference, parent, candidates."""
        parent = {PARENT: self.parent} if self.parent else {}
        return {REFERENCE: self.reference, **parent, **self.candidates}
