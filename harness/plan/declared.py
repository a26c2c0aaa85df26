"""The declared facts of a plan as rows: what `harness check` prints before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from harness.plan.data import HubText, ProbeSource
from harness.plan.hosts import AwsHosts
from harness.plan.model import FolderModel, HubModel, PackageModel
from harness.plan.plan import Plan
from harness.plan.words import arm_words, decision_words
from harness.strict import Model


class Row(Model):
    """One declared fact."""

    what: str
    value: str


def declared_rows(plan: Plan) -> tuple[Row, ...]:
    """Question, model, data, recipe, arms, decisions, serving, hosts and budget, in that order."""
    rows = [Row(what="question", value=plan.question), Row(what="model", value=_model(plan))]
    rows += _parent(plan)
    rows += _data(plan)
    rows.append(Row(what="recipe", value=_recipe(plan)))
    rows += [Row(what=f"arm {arm.name}", value=arm_words(plan, arm)) for arm in plan.arms]
    rows += [
        Row(what=f"decision {each.name}", value=decision_words(each)) for each in plan.decisions
    ]
    rows += _serving(plan)
    rows += _hosts(plan)
    rows.append(Row(what="budget", value=_budget(plan)))
    return tuple(rows)


def _model(plan: Plan) -> str:
    model = plan.model
    if isinstance(model, HubModel):
        named = f"{model.repo} at {model.revision[:12]}"
    elif isinstance(model, PackageModel):
        named = f"{model.file} of {model.package} {model.version}"
    elif isinstance(model, FolderModel):
        named = f"the folder {model.path}"
    else:
        named = "made by the trainer"
    count = f"{model.parameters:,} parameters" if model.parameters else "parameters not declared"
    return f"{named}, {count}"


def _parent(plan: Plan) -> Iterator[Row]:
    parent = plan.parent
    if parent is not None:
        yield Row(
            what="parent",
            value=f"the candidate '{parent.candidate}' of '{parent.study}', run {parent.run}, "
            f"parameter root {parent.parameter_root[:16]}; made again by {parent.plan}",
        )


def _source(source: ProbeSource) -> str:
    if not isinstance(source, HubText):
        return source.kind
    return f"{source.repo} at {source.revision[:12] if source.revision else 'no revision yet'}"


def _data(plan: Plan) -> Iterator[Row]:
    data = plan.data
    held = ", ".join(str(w) for w in data.tasks.held_out) or "none"
    yield Row(
        what="tasks",
        value=f"{', '.join(data.tasks.families)} over {data.tasks.rows} rows; wordings held out of "
        f"training: {held}",
    )
    again = data.roles.train_earlier
    earlier = f", {again:,} more of the parent's study" if again else ""
    replay = f" and {data.roles.train_replay:,} replay documents ({_source(data.replay)})" if (
        data.replay
    ) else ""  # fmt: skip
    yield Row(
        what="roles",
        value=f"{data.roles.train_tasks:,} training tasks{earlier}{replay}, "
        f"{data.roles.development:,} development and {data.roles.test:,} test cases; "
        f"loss weights {data.weights.task:g} and {data.weights.replay:g}",
    )
    for probes in data.retention:
        yield Row(
            what=f"retention {probes.name}",
            value=f"{probes.count} probes from {_source(probes.source)}",
        )
    if data.damage:
        yield Row(
            what="damage",
            value=f"targets of tasks whose SHA-256 id is {data.damage.remainder} modulo "
            f"{data.damage.modulus}",
        )
    for exposed in data.exposed:
        yield Row(what=f"re-used {exposed.role}", value=exposed.reason)


def _recipe(plan: Plan) -> str:
    recipe = plan.recipe
    corpus = plan.data.roles.all_tasks + plan.data.roles.train_replay
    passes = recipe.updates * recipe.global_batch / corpus
    return (
        f"{recipe.updates} updates of {recipe.global_batch} documents ({passes:g} passes), "
        f"{recipe.optimizer.kind} at {recipe.optimizer.lr:g}, {recipe.schedule.kind} after "
        f"{recipe.schedule.warmup_updates} warm-up updates, context {recipe.context_tokens} "
        f"tokens, {recipe.autocast or 'FP32'} passes{_packed(plan)}{_checkpoints(plan)}"
    )


def _checkpoints(plan: Plan) -> str:
    stored = plan.recipe.checkpoints
    if stored is None:
        return ""
    where = "on the hosts and in the store" if stored.off_host else "on the hosts"
    return f", a checkpoint every {stored.every_updates} updates {where}"


def _packed(plan: Plan) -> str:
    packed = plan.recipe.packed
    if packed is None:
        return ""
    kind = "compiled" if packed.compiled else "plain"
    return f", packed rows, {kind}, residual {packed.residual}, head {packed.head}"


def _serving(plan: Plan) -> Iterator[Row]:
    serving = plan.serving
    if serving is None:
        yield Row(what="serving", value="none")
        return
    yield Row(
        what="serving",
        value=f"'{serving.candidate}', {serving.requests} requests, {serving.concurrency} at once, "
        f"{serving.attempts} attempts of {serving.timeout_s:g} s, {serving.warmup_requests} to "
        f"warm up, {'cached' if serving.cache else 'no cache'}",
    )
    for phase in serving.phases:
        fault = "" if phase.fault == "none" else f", the last one {phase.fault}"
        asked = ""
        if phase.requests is not None:
            asked += f", {phase.requests} requests"
        if phase.arrivals_per_s is not None:
            asked += f", arriving at {phase.arrivals_per_s:g} a second"
        elif phase.concurrency is not None:
            asked += f", {phase.concurrency} at once"
        yield Row(what=f"phase {phase.name}", value=f"{phase.replicas} replica(s){fault}{asked}")


def _hosts(plan: Plan) -> Iterator[Row]:
    local, aws = plan.hosts.local, plan.hosts.aws
    if local is not None:
        yield Row(what="local hosts", value=f"{local.count} worker processes on {local.device}")
    if aws is not None:
        yield Row(what="AWS hosts", value=_aws(aws))


def _aws(aws: AwsHosts) -> str:
    return (
        f"{aws.count} x {' or '.join(aws.types)} in {', '.join(aws.zones)} ({aws.placement}), "
        f"{aws.volume.gib} GiB gp3, read-ahead {aws.read_ahead.training_kib} KiB in training and "
        f"{aws.read_ahead.staging_kib} KiB after it"
    )


def _budget(plan: Plan) -> str:
    budget = plan.budget
    kept = f"kept {budget.retention_days} days" if budget.retention_days else "kept until removed"
    return (
        f"ceiling {budget.ceiling_usd} USD with an allowance of {budget.allowance_usd}, deadline "
        f"{budget.deadline_s:,} s ({budget.deadline_s / 3600:g} h), {budget.traffic_gb_per_host:g} "
        f"GB a host, artifacts {kept}, {budget.attempts} launch(es)"
    )
