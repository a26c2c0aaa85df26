"""Faults of data, recipe and arms that no single field shows. Every rule yields findings."""

from __future__ import annotations

from collections.abc import Iterator

from harness.plan.data import GeneratedReplay, HubText, ProbeSource
from harness.plan.finding import Finding, error, warning
from harness.plan.plan import Plan
from harness.plan.recipe import Arm, LocalWindows, PowerSGD

TOKENS_A_ROW = 40
"""About what a record costs in a document, prompt and answer included (measured: 128 documents of
three rows held 15,300 tokens)."""


def study_findings(plan: Plan) -> Iterator[Finding]:
    """All rules of this file, in the order of the plan's fields."""
    yield from _cases(plan)
    yield from _probes(plan)
    yield from _recipe(plan)
    yield from _documents(plan)
    yield from _flip_floor(plan)
    yield from _starts(plan)
    yield from _arms(plan)
    yield from _serving(plan)


def _cases(plan: Plan) -> Iterator[Finding]:
    tasks, roles = plan.data.tasks, plan.data.roles
    families, wordings = len(tasks.families), len(tasks.test_wordings)
    if roles.test % families:
        yield warning(
            "/data/roles/test",
            f"{roles.test} test cases do not divide over {families} families, so some get more",
        )
    elif roles.test % (families * wordings):
        yield warning(
            "/data/roles/test",
            f"{roles.test} test cases do not divide over {families} families in {wordings} "
            "wordings, so some wordings get more",
        )
    if plan.recipe.context_tokens < TOKENS_A_ROW * tasks.rows:
        yield error(
            "/recipe/context_tokens",
            f"a context of {plan.recipe.context_tokens} tokens is too small for tables of "
            f"{tasks.rows} rows at about {TOKENS_A_ROW} tokens a row",
        )
    if plan.evaluation.max_new_tokens >= plan.recipe.context_tokens:
        yield error(
            "/evaluation/max_new_tokens",
            f"{plan.evaluation.max_new_tokens} new tokens leave no room for a prompt in a context "
            f"of {plan.recipe.context_tokens}",
        )
    if tasks.absent_every and "lookup" not in tasks.families:
        yield warning("/data/tasks/absent_every", "it counts lookups, and there are none")


def _probes(plan: Plan) -> Iterator[Finding]:
    like = [i for i, probes in enumerate(plan.data.retention) if _like_replay(plan, probes.source)]
    deciding = {each.probes for each in plan.decisions if not each.exploratory}
    for i in like:
        name = plan.data.retention[i].name
        if name in deciding or len(like) == len(plan.data.retention):
            yield warning(
                f"/data/retention/{i}/source",
                f"the probes '{name}' are text like the replay, on which loss falls while that of "
                "other text rises",
            )
    if plan.data.weights.task == 0:
        yield warning("/data/weights/task", "tasks have no weight in the loss, so none is learned")


def _like_replay(plan: Plan, source: ProbeSource) -> bool:
    """Whether probes come from where the replay documents come from."""
    replay = plan.data.replay
    if isinstance(replay, HubText):
        return isinstance(source, HubText) and source.repo == replay.repo
    return isinstance(replay, GeneratedReplay) and isinstance(source, GeneratedReplay)


def _recipe(plan: Plan) -> Iterator[Finding]:
    recipe = plan.recipe
    if recipe.schedule.warmup_updates >= recipe.updates:
        yield error(
            "/recipe/schedule/warmup_updates",
            f"a warm-up of {recipe.schedule.warmup_updates} updates never ends within "
            f"{recipe.updates} updates",
        )
    if recipe.checkpoints and recipe.checkpoints.every_updates >= recipe.updates:
        yield warning(
            "/recipe/checkpoints/every_updates",
            f"no checkpoint is due before the last of {recipe.updates} updates, so none is stored",
        )
    if recipe.checkpoints and all(arm.attempts == 1 for arm in plan.arms):
        yield warning(
            "/recipe/checkpoints",
            "every arm has one attempt only, so nothing is ever continued from a checkpoint",
        )
    if recipe.schedule.kind == "constant" and recipe.schedule.floor:
        yield warning("/recipe/schedule/floor", "a constant schedule has no floor")


def _flip_floor(plan: Plan) -> Iterator[Finding]:
    floor = plan.evaluation.flip_floor
    if floor is None:
        return
    if floor.candidate not in plan.arm_names:
        yield error(
            "/evaluation/flip_floor/candidate", f"there is no arm called '{floor.candidate}'"
        )
    if floor.batch == plan.evaluation.batch:
        yield error(
            "/evaluation/flip_floor/batch",
            f"the batch is {floor.batch} both times, so nothing can differ",
        )


def _documents(plan: Plan) -> Iterator[Finding]:
    corpus = plan.data.roles.all_tasks + plan.data.roles.train_replay
    read = plan.recipe.updates * plan.recipe.global_batch
    if read < corpus:
        yield warning(
            "/recipe/updates",
            f"{plan.recipe.updates} updates of {plan.recipe.global_batch} read {read} of "
            f"{corpus} training documents",
        )
    elif read % corpus:
        yield warning(
            "/recipe/updates",
            f"{read} documents are no whole number of passes over {corpus}",
        )
    if plan.recipe.global_batch > corpus:
        yield error(
            "/recipe/global_batch",
            f"a global batch of {plan.recipe.global_batch} is more than the {corpus} documents",
        )


def _starts(plan: Plan) -> Iterator[Finding]:
    if plan.parent is not None and all(arm.start == "parent" for arm in plan.arms):
        yield warning(
            "/arms", "every arm starts from the parent, so nothing shows what a fresh start gives"
        )


def _arms(plan: Plan) -> Iterator[Finding]:
    for i, arm in enumerate(plan.arms):
        share = plan.recipe.global_batch // arm.workers
        context = plan.recipe.context_tokens
        if plan.recipe.packed and arm.microbatch is not None and arm.microbatch < context:
            yield error(
                f"/arms/{i}/microbatch",
                f"a microbatch of {arm.microbatch} tokens cannot hold a document of {context}",
            )
        if not plan.recipe.packed and arm.microbatch is not None and arm.microbatch > share:
            yield error(
                f"/arms/{i}/microbatch",
                f"a microbatch of {arm.microbatch} is more than the {share} documents that each "
                f"worker of '{arm.name}' has in an update",
            )
        exchange = arm.exchange
        yield from _windows(plan, i, arm)
        if not isinstance(exchange, PowerSGD):
            continue
        if exchange.warmup and exchange.warmup.rank <= exchange.rank:
            yield error(
                f"/arms/{i}/exchange/warmup/rank",
                f"a warm-up of rank {exchange.warmup.rank} is no higher than the rank "
                f"{exchange.rank} that follows",
            )
        if exchange.dense_updates >= plan.recipe.updates:
            yield error(
                f"/arms/{i}/exchange/dense_updates",
                f"all {plan.recipe.updates} updates of '{arm.name}' are exchanged dense, so "
                "nothing is compressed",
            )
        if exchange.min_compression_rate <= 1:
            yield warning(
                f"/arms/{i}/exchange/min_compression_rate",
                "factors that are not smaller than their matrix save nothing",
            )
        if not exchange.error_feedback:
            yield warning(
                f"/arms/{i}/exchange/error_feedback",
                f"without error feedback '{arm.name}' loses what its factors leave out",
            )


def _windows(plan: Plan, i: int, arm: Arm) -> Iterator[Finding]:
    exchange = arm.exchange
    if not isinstance(exchange, LocalWindows):
        return
    if plan.recipe.updates % exchange.window:
        yield error(
            f"/arms/{i}/exchange/window",
            f"{plan.recipe.updates} updates are no whole number of windows of {exchange.window}, "
            f"so the workers of '{arm.name}' would end apart",
        )
    elif exchange.window == plan.recipe.updates:
        yield warning(
            f"/arms/{i}/exchange/window",
            f"the workers of '{arm.name}' meet only once, at the end",
        )
    if plan.recipe.global_batch % arm.workers:
        yield warning(
            f"/arms/{i}/exchange/kind",
            f"{plan.recipe.global_batch} documents do not divide over {arm.workers} workers, and "
            "in local windows each worker's own share counts alike",
        )


def _serving(plan: Plan) -> Iterator[Finding]:
    serving = plan.serving
    if serving is None:
        return
    most = max((kind.count for kind in (plan.hosts.local, plan.hosts.aws) if kind), default=0)
    for i, phase in enumerate(serving.phases):
        if phase.replicas > most > 0:
            yield error(
                f"/serving/phases/{i}/replicas",
                f"the phase '{phase.name}' wants {phase.replicas} replicas on {most} host(s)",
            )
        if phase.fault != "none" and phase.replicas == 1:
            yield warning(
                f"/serving/phases/{i}/fault",
                f"the only replica of '{phase.name}' is the one with the fault, so no request "
                "can succeed",
            )
        if phase.arrivals_per_s is not None and phase.concurrency is not None:
            yield error(
                f"/serving/phases/{i}/concurrency",
                f"the phase '{phase.name}' has arrivals at a rate, so nothing bounds what is out "
                "at once",
            )
        if phase.fault != "none" and serving.attempts == 1:
            yield warning(
                "/serving/attempts", f"with one attempt no request survives '{phase.fault}'"
            )
    if serving.autocast is not None:
        yield warning(
            "/serving/autocast",
            "with bf16 the tokens depend on what shares a batch; FP32 leaves near ties only",
        )
    if serving.cache:
        yield warning("/serving/cache", "a cache makes the phases measure it, not the model")
