"""Data roles: what is trained on, scored and probed, and the rules that make them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.plan.kinds import Count, CountOrZero, Misfit, Name, NotNegative, Revision, Text
from harness.strict import Model

Family = Literal["lookup", "filter", "total", "sort"]
Wording = Annotated[int, Field(ge=0, le=3)]


class Tasks(Model):
    """Generated tasks over small tables of records (docs/contract.md, 'Tasks')."""

    families: Annotated[tuple[Family, ...], Field(min_length=1)]
    """Cases are dealt to families in this order, round robin."""
    rows: Annotated[int, Field(ge=2, le=12)]
    """Records in each table."""
    absent_every: CountOrZero
    """Every n-th lookup asks for the absent id Z000 (0: never)."""
    train_wordings: Annotated[tuple[Wording, ...], Field(min_length=1)]
    test_wordings: Annotated[tuple[Wording, ...], Field(min_length=1)]
    """Those that are not in train_wordings are held out of training."""

    @model_validator(mode="after")
    def _distinct(self) -> Tasks:
        for name in ("families", "train_wordings", "test_wordings"):
            values = getattr(self, name)
            if len(set(values)) != len(values):
                raise Misfit(f"/{name}", f"{name} names something twice")
        return self

    @property
    def held_out(self) -> tuple[int, ...]:
        """Wordings that are tested and never trained."""
        return tuple(w for w in self.test_wordings if w not in self.train_wordings)


class GeneratedReplay(Model):
    """Conversations from Harness's own seeded generator (offline use)."""

    kind: Literal["generated"]


class HubText(Model):
    """Rows of a hub data set's file at a pinned revision."""

    kind: Literal["hub-dataset"]
    repo: Text
    revision: Revision | None = None
    """Null or absent: not pinned yet. `check` reports it, `prepare` refuses it (plan/pins.py)."""
    file: Text
    """A .jsonl or .parquet file of the repository."""
    column: Text
    """'messages' style column (list of role/content) or a text column."""


class Passages(Model):
    """Plain prose passages that come with Harness, not generated."""

    kind: Literal["passages"]


class EarlierTests(Model):
    """Test cases of the parent's study, each with its right answer: loss counts on the answers.
    What they measure is how much of the first cohort a model still knows."""

    kind: Literal["earlier-test"]


Replay = Annotated[GeneratedReplay | HubText, Field(discriminator="kind")]
ProbeSource = Annotated[
    Passages | GeneratedReplay | HubText | EarlierTests, Field(discriminator="kind")
]


class Probes(Model):
    """Retention probes: text whose unweighted loss is measured before and after training."""

    name: Name
    source: ProbeSource
    count: Count


class Damage(Model):
    """Which task targets a damaged corpus corrupts: those whose SHA-256 id is `remainder` mod."""

    rule: Literal["sha256-mod"]
    modulus: Annotated[int, Field(ge=2, le=1000)]
    remainder: CountOrZero

    @model_validator(mode="after")
    def _within(self) -> Damage:
        if self.remainder >= self.modulus:
            raise Misfit("/remainder", "the remainder is not below the modulus")
        return self


class Weights(Model):
    """Loss weight of every response token."""

    task: NotNegative
    replay: NotNegative


class Roles(Model):
    """How many documents and cases each role has. No case is in two roles."""

    train_tasks: Count
    """New tasks; in a continuation, of the second cohort."""
    train_replay: CountOrZero
    train_earlier: Count | None = None
    """Training tasks of the parent's study that are trained on again, with the weight of tasks;
    absent: none."""
    development: Count
    test: Count

    @property
    def all_tasks(self) -> int:
        """Task documents of a corpus, of both cohorts."""
        return self.train_tasks + (self.train_earlier or 0)


class Exposed(Model):
    """A role that re-uses cases of earlier studies, and why; it is printed under limits."""

    role: Literal["train", "development", "test", "retention"]
    reason: Text


class Data(Model):
    """Everything that prepared inputs are made from."""

    tasks: Tasks
    roles: Roles
    replay: Replay | None = None
    retention: tuple[Probes, ...] = ()
    damage: Damage | None = None
    weights: Weights
    exposed: tuple[Exposed, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Data:
        if self.roles.train_replay and self.replay is None:
            raise Misfit("/replay", "roles.train_replay is set and no replay source is declared")
        if len({probes.name for probes in self.retention}) != len(self.retention):
            raise Misfit("/retention", "two retention probe sets have the same name")
        return self
