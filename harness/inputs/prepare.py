"""Preparation: a plan and a tokenizer become the folder that every later stage reads."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import BadInput
from harness.exposure import ID_DIGITS, Ledger, check
from harness.inputs import layout
from harness.inputs.cohorts import (
    Cohort,
    deal_cohort,
    earlier_tasks,
    earlier_tests,
    prove_earlier,
)
from harness.inputs.hub import read_text_rows
from harness.inputs.identity import identity_of, list_files
from harness.inputs.masks import Document
from harness.inputs.prepared import ArmTargets, PreparedInputs, Skipped
from harness.inputs.tokenise import ChatTokenizer
from harness.plan import Plan
from harness.plan.data import EarlierTests, GeneratedReplay, HubText, ProbeSource
from harness.tasks.cases import Case, answer_text
from harness.tasks.damage import is_damaged, wrong_answer
from harness.tasks.probes import texts_of
from harness.tasks.roles import CaseRole
from harness.tasks.texts import Text, conversation, deal_texts
from trainer import contract


def prepare_inputs(
    plan: Plan,
    plan_folder: Path,
    tokenizer_json: Path,
    out: Path,
    *,
    ledger: Ledger,
    hub_endpoint: str | None = None,
) -> PreparedInputs:
    """Write the prepared folder (docs/contract.md) to `out` and say what is in it.

    The folder appears whole or not at all; one that is already there must be the same. Nothing is
    truncated: a document or prompt over recipe.context_tokens is BadInput, and so is a role that
    cannot be filled without repeating content. Raises Refused when the ledger knows a case.
    `plan_folder` is what paths in the plan are relative to.
    """
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        work = _Preparation(plan, ChatTokenizer(tokenizer_json, plan.chat), partial, hub_endpoint)
        work.deal(deal_cohort(plan, plan_folder))
        if plan.parent is not None and work.earlier is not None:
            prove_earlier(plan.parent, work.earlier, ledger)
        notes = check(plan, work.exposure, ledger)
        work.write()
        prepared = work.summary(notes, contract.hash_file(tokenizer_json)[0])
        _publish(partial, out, prepared.identity)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return prepared


def _publish(partial: Path, out: Path, identity: str) -> None:
    if out.exists() and any(out.iterdir()):
        if identity_of(list_files(out)) != identity:
            raise BadInput("holds other files than this preparation; empty it", where=str(out))
        return
    if out.exists():
        out.rmdir()
    partial.rename(out)
    contract.sync_folder(out.parent)


@dataclass
class _Preparation:
    """The steps of one preparation, in order: deal, write, summary."""

    plan: Plan
    tokenizer: ChatTokenizer
    folder: Path
    endpoint: str | None
    cases: dict[CaseRole, tuple[Case, ...]] = field(default_factory=dict)
    earlier: Cohort | None = None
    again: tuple[Case, ...] = ()
    """Training tasks of the earlier cohort, trained on again."""
    replay: tuple[Text, ...] = ()
    probes: dict[str, tuple[Text, ...]] = field(default_factory=dict)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    exposure: dict[str, tuple[str, ...]] = field(default_factory=dict)
    longest: dict[str, int] = field(default_factory=dict)
    corpora: dict[str, tuple[Document, ...]] = field(default_factory=dict)
    schedule: list[list[int]] = field(default_factory=list)

    def deal(self, cohort: Cohort) -> None:
        """Choose every case and text."""
        data = self.plan.data
        self.cases, self.earlier = dict(cohort.cases), cohort.earlier
        if self.earlier is not None and data.roles.train_earlier:
            where = "plan#/data/roles/train_earlier"
            self.again = earlier_tasks(self.earlier, data.roles.train_earlier, where)
        taken: set[str] = set()
        for probes in data.retention:
            role = f"retention.{probes.name}"
            self.probes[probes.name] = self._deal_texts(role, probes.source, probes.count, taken)
        if data.replay is not None:
            self.replay = self._deal_texts("replay", data.replay, data.roles.train_replay, taken)
        ids = {role: [case.id for case in cases] for role, cases in self.cases.items()}
        self.exposure = {
            "train": _short(ids["train"]),
            "replay": _short([case.id for case in self.again] + [text.id for text in self.replay]),
            "development": _short(ids["development"]),
            "test": _short(ids["test"]),
            "retention": _short(
                [text.id for texts in self.probes.values() for text in texts]
                + [case.id for case in self._earlier_tests()]
            ),
        }

    def _earlier_tests(self) -> tuple[Case, ...]:
        """Test cases of the earlier cohort that a probe set holds: the ledger knows them by id."""
        counts = [p.count for p in self.plan.data.retention if isinstance(p.source, EarlierTests)]
        if self.earlier is None or not counts:
            return ()
        return earlier_tests(self.earlier, max(counts), "plan#/data/retention")

    def _deal_texts(
        self, role: str, source: ProbeSource, count: int, taken: set[str]
    ) -> tuple[Text, ...]:
        """A hub data set's rows that are too long are passed over (and counted), since nobody
        chose them one by one; any other text that is too long is an error later on."""
        if isinstance(source, EarlierTests):
            cases = self._earlier_tests()[:count]
            return deal_texts(role, (_taught(case, False) for case in cases), count, taken)[0]
        rows = texts_of(
            source,
            seed=self.plan.seed,
            role=role,
            read_rows=lambda hub: read_text_rows(hub, endpoint=self.endpoint),
        )
        if not isinstance(source, HubText):
            return deal_texts(role, rows, count, taken)[0]
        texts, passed = deal_texts(role, rows, count, taken, lambda text: self._fits(text, role))
        self.skipped[role] = Skipped(repeated=passed.repeated, too_long=passed.too_long)
        return texts

    def _fits(self, text: Text, role: str) -> bool:
        (document,) = self.tokenizer.documents([text], role=role)
        return document.target_count > 0 and len(document.tokens) <= self.plan.recipe.context_tokens

    def write(self) -> None:
        """Tokenise and write every file."""
        self._write_training()
        self._write_scored("development")
        self._write_scored("test")
        for name, texts in self.probes.items():
            role = f"retention.{name}"
            documents = self._documents(role, texts, [text.id for text in texts])
            layout.write_probes(self.folder, name, texts, documents)

    def _write_training(self) -> None:
        recipe, weights = self.plan.recipe, self.plan.data.weights
        tasks = self._tasks()
        ids = [case.id for case in tasks] + [text.id for text in self.replay]
        kinds = ["task"] * len(tasks) + ["replay"] * len(self.replay)
        kind_weights = {"task": weights.task, "replay": weights.replay}
        for corpus in ("clean", "damaged") if self.plan.data.damage else ("clean",):
            hit = [corpus == "damaged" and self._is_damaged(case) for case in tasks]
            taught = [_taught(case, wrong) for case, wrong in zip(tasks, hit, strict=True)]
            documents = self._documents(f"train.{corpus}", [*taught, *self.replay], ids)
            rows = zip(ids, kinds, documents, (kind_weights[kind] for kind in kinds), strict=True)
            layout.write_corpus(self.folder, corpus, rows)
            texts = [
                layout.task_text(case, text, damaged=wrong)
                for case, text, wrong in zip(tasks, taught, hit, strict=True)
            ]
            texts += [layout.other_text(text, "replay") for text in self.replay]
            layout.write_texts(self.folder, corpus, texts)
            self.corpora[corpus] = tuple(documents)
        self.schedule = layout.deal_schedule(
            self.plan.seed,
            documents=len(ids),
            updates=recipe.updates,
            global_batch=recipe.global_batch,
        )
        layout.write_schedule(self.folder, self.schedule)

    def _tasks(self) -> tuple[Case, ...]:
        """Every task of the corpora: the plan's own, then those of the earlier cohort."""
        return (*self.cases["train"], *self.again)

    def _is_damaged(self, case: Case) -> bool:
        damage = self.plan.data.damage
        return damage is not None and is_damaged(case.id, damage)

    def _documents(self, role: str, texts: Sequence[Text], ids: Sequence[str]) -> list[Document]:
        documents = self.tokenizer.documents(texts, role=role)
        limit = self.plan.recipe.context_tokens
        for identity, document in zip(ids, documents, strict=True):
            if len(document.tokens) > limit:
                raise _too_long(role, identity, f"has {len(document.tokens)} tokens", limit)
        self.longest[role] = max((len(one.tokens) for one in documents), default=0)
        return documents

    def _write_scored(self, role: CaseRole) -> None:
        cases = self.cases[role]
        prompts = self.tokenizer.prompts([case.prompt for case in cases])
        answers = self.tokenizer.lengths([answer_text(case.answer) for case in cases])
        limit, new = self.plan.recipe.context_tokens, self._new_tokens(role)
        shortest = self.plan.evaluation.max_new_tokens
        for case, prompt, answer in zip(cases, prompts, answers, strict=True):
            if len(prompt) + new > limit:
                what = f"has {len(prompt)} tokens and {new} new ones"
                raise _too_long(role, case.id, what, limit)
            if answer + 1 > shortest:
                what = f"has a right answer of {answer} tokens and an end token"
                raise _too_long(role, case.id, what, shortest, "plan#/evaluation/max_new_tokens")
        self.longest[role] = max(len(prompt) for prompt in prompts)
        layout.write_cases(self.folder, role, cases, prompts)

    def _new_tokens(self, role: CaseRole) -> int:
        """The most tokens that are generated for a case: serving uses development cases."""
        new = self.plan.evaluation.max_new_tokens
        if role == "development" and self.plan.serving is not None:
            return max(new, self.plan.serving.max_new_tokens)
        return new

    def summary(self, notes: tuple[str, ...], tokenizer_sha256: str) -> PreparedInputs:
        """The folder in numbers."""
        files = list_files(self.folder)
        data = self.plan.data
        counts = {
            "train-tasks": len(self.cases["train"]),
            "train-replay": len(self.replay),
            **({"train-earlier": len(self.again)} if self.again else {}),
            "development": len(self.cases["development"]),
            "test": len(self.cases["test"]),
        }
        counts |= {f"retention.{name}": len(texts) for name, texts in self.probes.items()}
        return PreparedInputs(
            identity=identity_of(files),
            files=files,
            tokenizer_sha256=tokenizer_sha256,
            end_tokens=(self.tokenizer.end,),
            counts=counts,
            arms={arm.name: self._arm_targets(arm.corpus) for arm in self.plan.arms},
            longest=self.longest,
            damaged=sum(self._is_damaged(case) for case in self._tasks()),
            exposure=self.exposure,
            held_out_wordings=data.tasks.held_out,
            replay_source=_source_name(data.replay),
            distinct_conversations=len({text.id for text in self.replay}),
            skipped=self.skipped,
            notes=(*notes, *self._cohort_notes(), *self._skipped_notes()),
        )

    def _cohort_notes(self) -> list[str]:
        """What of the earlier cohort is used again, on purpose."""
        parent = self.plan.parent
        if parent is None or not self.again:
            return []
        return [
            f"{len(self.again)} training tasks are of the earlier study '{parent.study}', whose "
            f"candidate '{parent.candidate}' was trained on them."
        ]

    def _skipped_notes(self) -> list[str]:
        """What a reader must know of rows that no role could take."""
        limit = self.plan.recipe.context_tokens
        return [
            f"{role} was filled from a data set's rows of at most {limit} tokens: "
            f"{skipped.too_long} longer ones and {skipped.repeated} repeated ones were passed over."
            for role, skipped in self.skipped.items()
            if skipped.too_long or skipped.repeated
        ]

    def _arm_targets(self, corpus: str) -> ArmTargets:
        documents, weights = self.corpora[corpus], self.plan.data.weights
        first_replay = len(self._tasks())
        tokens = task = replay = 0
        for number in (one for update in self.schedule for one in update):
            tokens += len(documents[number].tokens)
            if number < first_replay:
                task += documents[number].target_count
            else:
                replay += documents[number].target_count
        return ArmTargets(
            documents=sum(map(len, self.schedule)),
            tokens=tokens,
            targets=task + replay,
            weighted_targets=weights.task * task + weights.replay * replay,
        )


def _taught(case: Case, wrong: bool) -> Text:
    """The training conversation of a task, with its right or its damaged answer."""
    answer = wrong_answer(case) if wrong else case.answer
    return conversation(case.prompt, answer_text(answer))


def _short(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(identity[:ID_DIGITS] for identity in ids)


def _source_name(replay: GeneratedReplay | HubText | None) -> str | None:
    if isinstance(replay, HubText):
        return f"{replay.repo}@{replay.revision}/{replay.file}"
    return replay.kind if replay else None


def _too_long(
    role: str, identity: str, what: str, limit: int, where: str = "plan#/recipe/context_tokens"
) -> BadInput:
    return BadInput(f"{role} {identity[:16]} {what}, over the limit of {limit}", where=where)
