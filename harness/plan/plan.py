"""The whole plan as one typed value, with the rules that span its parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.plan.budget import Budget
from harness.plan.data import Data, EarlierTests
from harness.plan.decisions import PAIRED, SERVING, Decision, Evaluation
from harness.plan.hosts import Hosts, StoreChoice
from harness.plan.kinds import Misfit, Name, Text
from harness.plan.model import Chat, ModelSource, TokenizerSource, TrainerSource
from harness.plan.parent import PARENT, Parent
from harness.plan.recipe import Arm, Recipe
from harness.plan.serving import Serving
from harness.strict import Model

REFERENCE = "reference"
"""The untrained seed model, scored like a candidate."""


class Plan(Model):
    """The frozen question (plan.json)."""

    schema_: Literal["harness/plan/1"] = Field(alias="schema")
    name: Name
    question: Text
    seed: Text
    """All randomness of the study is derived from this text."""
    trainer: TrainerSource
    environment: Literal["pinned", "as-found"]
    """pinned: built from the trainer's hash-pinned requirements; as-found: nothing installed."""
    model: ModelSource
    parent: Parent | None = None
    """A candidate of an earlier study, which arms may start from and which is scored like the
    reference; absent: every arm starts from the seed model."""
    tokenizer: TokenizerSource
    chat: Chat
    data: Data
    recipe: Recipe
    arms: Annotated[tuple[Arm, ...], Field(min_length=1)]
    """In the order they run."""
    evaluation: Evaluation
    decisions: tuple[Decision, ...]
    serving: Serving | None = None
    hosts: Hosts
    store: StoreChoice | None = None
    budget: Budget
    limits: tuple[Text, ...] = ()
    """Sentences that the report prints under limits."""

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Arms in running order."""
        return tuple(arm.name for arm in self.arms)

    @property
    def models(self) -> tuple[str, ...]:
        """All that is scored: the reference, the parent where there is one, then the arms."""
        return (REFERENCE, *((PARENT,) if self.parent else ()), *self.arm_names)

    def arm(self, name: str) -> Arm:
        """The arm of that name (KeyError when there is none)."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise KeyError(name)

    @property
    def workers(self) -> int:
        """Workers of the largest arm."""
        return max(arm.workers for arm in self.arms)

    @model_validator(mode="after")
    def _arms_fit(self) -> Plan:
        names = self.arm_names
        for i, arm in enumerate(self.arms):
            if arm.name in names[:i] or arm.name == REFERENCE:
                raise Misfit(
                    f"/arms/{i}/name",
                    f"arm names must differ from each other and from '{REFERENCE}'",
                )
            if self.parent and arm.name == PARENT:
                raise Misfit(f"/arms/{i}/name", f"'{PARENT}' is the model that the plan names")
            if arm.start == PARENT and self.parent is None:
                raise Misfit(
                    f"/arms/{i}/start",
                    f"arm '{arm.name}' starts from the parent and the plan names none",
                )
            if self.recipe.global_batch % arm.workers:
                raise Misfit(
                    f"/arms/{i}/workers",
                    f"the global batch of {self.recipe.global_batch} does not divide over "
                    f"{arm.workers} workers of arm '{arm.name}'",
                )
            if arm.corpus == "damaged" and self.data.damage is None:
                raise Misfit(
                    f"/arms/{i}/corpus",
                    f"arm '{arm.name}' is damaged and data.damage is not declared",
                )
        for name, kind in (("local", self.hosts.local), ("aws", self.hosts.aws)):
            if kind is not None and kind.count < self.workers:
                raise Misfit(
                    f"/hosts/{name}/count",
                    f"{self.workers} workers need more than {kind.count} host(s)",
                )
        return self

    @model_validator(mode="after")
    def _cohort_fits(self) -> Plan:
        if self.parent is not None:
            return self
        if self.data.roles.train_earlier:
            raise Misfit("/data/roles/train_earlier", "the plan names no parent to take tasks from")
        for i, probes in enumerate(self.data.retention):
            if isinstance(probes.source, EarlierTests):
                raise Misfit(
                    f"/data/retention/{i}/source", "the plan names no parent to take cases from"
                )
        return self

    @model_validator(mode="after")
    def _decisions_fit(self) -> Plan:
        names = [decision.name for decision in self.decisions]
        models = set(self.models)
        phases = {phase.name for phase in self.serving.phases} if self.serving else set[str]()
        probes = {probe.name for probe in self.data.retention}
        for i, decision in enumerate(self.decisions):
            at, named = f"/decisions/{i}", f"decision '{decision.name}'"
            if decision.name in names[:i]:
                raise Misfit(f"{at}/name", "two decisions have the same name")
            known = phases if decision.statistic in SERVING else models
            for field in ("candidate", "reference"):
                who = getattr(decision, field)
                if who is not None and who not in known:
                    raise Misfit(f"{at}/{field}", f"{named} names '{who}', which is unknown")
            if decision.probes is not None and decision.probes not in probes:
                raise Misfit(f"{at}/probes", f"{named} names unknown probes")
            if decision.statistic in PAIRED and decision.candidate == decision.reference:
                raise Misfit(
                    f"{at}/reference", f"{named} compares '{decision.candidate}' with itself"
                )
        return self

    @model_validator(mode="after")
    def _serving_fits(self) -> Plan:
        serving = self.serving
        if serving is None:
            return self
        if serving.candidate not in self.arm_names:
            raise Misfit(
                "/serving/candidate",
                f"serving names the arm '{serving.candidate}', which is unknown",
            )
        most = self.data.roles.development
        if serving.requests > most:
            raise Misfit(
                "/serving/requests",
                "serving asks for more requests than there are development cases",
            )
        for i, phase in enumerate(serving.phases):
            if serving.requests_of(phase) > most:
                raise Misfit(
                    f"/serving/phases/{i}/requests",
                    f"the phase '{phase.name}' asks for more requests than there are development "
                    "cases",
                )
        names = [phase.name for phase in serving.phases]
        if len(set(names)) != len(names):
            raise Misfit("/serving/phases", "two serving phases have the same name")
        return self
