"""evaluate: reference and candidates, behind the selection commit; strict scoring."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from harness import jobs, machine, outputs, recipes
from harness.departure import TimeToLeave, departure_of
from harness.errors import Refused, Waiting
from harness.group_job import GroupJob
from harness.hosts.protocol import Host
from harness.plan.parent import PARENT
from harness.plan.plan import REFERENCE
from harness.prepared import Prepared
from harness.rank_bodies import CompareBody, EvaluateBody, body_of, read_rank_receipt
from harness.receipts import (
    Distance,
    EvaluateReceipt,
    Incomplete,
    ModelScores,
    PreflightReceipt,
    PrepareReceipt,
    ProvisionReceipt,
    PushReceipt,
    Unfinished,
)
from harness.scoring.answers import score
from harness.selection import Selected
from harness.stages.push import fetch_listing, ready_hosts
from harness.stages.select import require_selection
from harness.stages.stamp import Stamp
from harness.store.protocol import Artifact
from harness.strict import load_file
from harness.study import Receipts, Study
from trainer import contract

EVALUATE_S = 6 * 3600
EVALUATE_ATTEMPTS = 3


def evaluate(study: Study, done: Receipts, stamp: Stamp) -> EvaluateReceipt:
    """Score the test cases and the retention probes of every selected model.

    Raises Refused when no selection is committed or a model is not the selected one. At the point
    of no return the receipt holds the models that were scored by then.
    """
    selection = require_selection(study, done)
    named = selection.named()
    arms = study.plan.arm_names
    models: list[ModelScores] = []
    distances: list[Distance] = []
    floor, again = None, study.plan.evaluation.flip_floor
    left: TimeToLeave | None = None
    try:
        for name in study.plan.models:
            models.append(score_model(study, done, name, named[name], "test"))
        for other in arms[1:]:
            distances.append(_compare(study, done, other, arms[0]))
        if again is not None:
            chosen = named[again.candidate]
            floor = score_model(study, done, again.candidate, chosen, "test", batch=again.batch)
    except TimeToLeave as error:
        left = error
    begun = left.attempts if left else ()
    return EvaluateReceipt(
        **stamp.close(),
        models=tuple(models),
        distances=tuple(distances),
        floor=floor,
        unfinished=(Unfinished(name=f"evaluation {len(models) + 1}", attempts=begun),)
        if begun
        else None,
        incomplete=left.incomplete if left else None,
    )


def score_model(
    study: Study,
    done: Receipts,
    name: str,
    selected: Selected,
    role: str,
    *,
    batch: int | None = None,
) -> ModelScores:
    """Generate and score one model's answers to a role, on the first host.

    `role` is 'test' (with every retention probe) or 'development' (without). `batch` is the second
    size of the flip floor: the cases are answered again, without probes, into floor/.
    """
    key, place = f"evaluate/{role}/{name}", f"models/{name}"
    if batch is not None:
        key, place = f"evaluate/floor/{name}", "floor"
    host = ready_hosts(study, done)[0]
    fleet = study.fleet(done.of(ProvisionReceipt))
    departure = departure_of(study, done, fleet)
    if (due := departure.due((host,))) and not _goes_on(study, key, due):
        raise TimeToLeave(due)
    folder = _place(study, host, name, selected)
    probed = role == "test" and batch is None
    probes = tuple(each.name for each in study.plan.data.retention) if probed else ()
    provisioned = done.of(ProvisionReceipt)
    prepared = load_file(Prepared, study.prepared_path)
    recipe = recipes.evaluate(
        study.plan,
        roles=(role,),
        probes=probes,
        end_tokens=prepared.end_tokens,
        device=done.of(PreflightReceipt).device,
        threads=machine.threads_of(study.plan, provisioned, 1),
        batch=batch,
    )
    group = GroupJob(
        key=key,
        recipe=recipe,
        hosts=(host,),
        pushed=done.of(PushReceipt).hosts,
        model=folder,
        limit_s=EVALUATE_S,
        label=f"evaluate {name}" + (f" in batches of {batch}" if batch is not None else ""),
        unit="case",
        leave=lambda: departure.due((host,)),
        accept=lambda one: _accept(study, done, one, role, probes),
    )
    made, out = jobs.attempts(study, fleet, group, EVALUATE_ATTEMPTS)

    def collect() -> ModelScores:
        local = study.work / place
        local.mkdir(parents=True, exist_ok=True)
        for file in ("receipt-0.json", f"answers-{role}.jsonl"):
            host.get(f"{out}/{file}", local / file)
        rank = read_rank_receipt(local / "receipt-0.json")
        if rank.model_root != selected.parameter_root:
            raise Refused("the model that was scored is not the selected one", where=name)
        kept = []
        for probe in probes:
            host.get(f"{out}/retention-{probe}.jsonl", local / f"retention-{probe}.jsonl")
            kept.append(_store(study, place, local / f"retention-{probe}.jsonl"))
        _score(study, done, local, role)
        return ModelScores(
            name=name,
            parameter_root=selected.parameter_root,
            attempts=made,
            rank=rank,
            answers=(_store(study, place, local / f"answers-{role}.jsonl"),),
            retention=tuple(kept),
            scores=_store(study, place, local / "scores.jsonl"),
        )

    return study.journal.effect(
        f"collect/{key}", ModelScores, intent={"out": out}, act=collect,
        adopt=lambda: None,
    )  # fmt: skip


def _accept(
    study: Study,
    done: Receipts,
    group: GroupJob,
    role: str,
    probes: tuple[str, ...],
) -> None:
    """Raises BadInput unless the answers and losses are those that were asked for."""
    outputs.receipts(study, group, EvaluateBody)
    host, local = group.hosts[0], study.work / "outputs" / group.job
    file = outputs.fetch(host, f"{group.out}/answers-{role}.jsonl", local / f"answers-{role}.jsonl")
    expected = contract.read_lines(_prepared_file(study, done, f"{role}.answers.jsonl"))
    outputs.answers(
        file,
        [row["id"] for row in expected],
        most_tokens=study.plan.evaluation.max_new_tokens,
    )
    counts = {each.name: each.count for each in study.plan.data.retention}
    for probe in probes:
        path = f"retention-{probe}.jsonl"
        outputs.retention(outputs.fetch(host, f"{group.out}/{path}", local / path), counts[probe])


def _goes_on(study: Study, key: str, due: Incomplete) -> bool:
    """Whether what is recorded, or a host that still stands, can give this evaluation."""
    if study.journal.find("outcome", f"collect/{key}") is not None:
        return True
    begun = study.journal.find("intent", f"attempt/{key}/1") is not None
    return begun and due.because == "deadline"


def _store(study: Study, place: str, path: Path) -> Artifact:
    return study.store.put(path, name=f"{place}/{path.name}")


def _place(study: Study, host: Host, name: str, selected: Selected) -> str:
    """The model's stored files in a folder of the host, hash checked."""
    if name == REFERENCE:
        return "seed"
    if name == PARENT:
        return PARENT
    listing = [each.to_json() for each in selected.files]
    digest = contract.hash_of(listing)
    local = study.work / f"listing-{name}.json"
    contract.write_json(local, listing)
    fetch_listing(study, host, f"models/{name}", local, digest)
    return f"models/{name}"


def _score(study: Study, done: Receipts, folder: Path, role: str) -> None:
    """Write scores.jsonl: every answer decoded and strictly scored, in the order of the cases."""
    tokenizer = _tokenizer(study, done)
    expected = contract.read_lines(_prepared_file(study, done, f"{role}.answers.jsonl"))
    answers = contract.read_lines(folder / f"answers-{role}.jsonl")
    if [row["id"] for row in answers] != [row["id"] for row in expected]:
        raise Waiting(f"the answers to '{role}' are not those of the cases", where=str(folder))
    rows = []
    for case, answer in zip(expected, answers, strict=True):
        text = tokenizer.decode(answer["tokens"], skip_special_tokens=False)
        found = score(text, case["expected"], study.plan.evaluation.max_answer_bytes)
        rows.append(
            {
                "id": case["id"],
                "role": role,
                "family": case["family"],
                "wording": case["wording"],
                "correct": found.correct,
                "valid_json": found.valid_json,
                "reason": "" if found.correct else found.reason,
                "text": text,
            }
        )
    contract.write_lines(folder / "scores.jsonl", rows)


def _tokenizer(study: Study, done: Receipts) -> Tokenizer:
    path = study.work / "tokenizer.json"
    if not path.exists():
        files = done.of(PrepareReceipt).seed_files
        study.store.fetch(next(each for each in files if each.name == "tokenizer.json"), path)
    return Tokenizer.from_file(str(path))


def _prepared_file(study: Study, done: Receipts, name: str) -> Path:
    path = study.work / "prepared" / name
    files = done.of(PrepareReceipt).prepared_files
    study.store.fetch(next(each for each in files if each.name == name), path)
    return path


def _accept_comparison(study: Study, group: GroupJob) -> None:
    outputs.receipts(study, group, CompareBody)


def _compare(study: Study, done: Receipts, candidate: str, reference: str) -> Distance:
    """Two candidates' parameters; both are in the first host's models/ folder."""
    host = ready_hosts(study, done)[0]
    fleet = study.fleet(done.of(ProvisionReceipt))
    departure = departure_of(study, done, fleet)
    group = GroupJob(
        key=f"compare/{candidate}-{reference}",
        recipe=recipes.compare(
            against=f"../models/{reference}",
            device="cpu",
            threads=machine.threads_of(study.plan, done.of(ProvisionReceipt), 1),
        ),
        hosts=(host,),
        pushed=done.of(PushReceipt).hosts,
        model=f"models/{candidate}",
        limit_s=EVALUATE_S,
        label=f"compare {candidate} with {reference}",
        heartbeat=False,
        leave=lambda: departure.due((host,)),
        accept=lambda one: _accept_comparison(study, one),
    )
    _, out = jobs.attempts(study, fleet, group, EVALUATE_ATTEMPTS)
    local = study.work / "compare" / f"{candidate}-{reference}.json"
    local.parent.mkdir(exist_ok=True)
    host.get(f"{out}/receipt-0.json", local)
    body = body_of(CompareBody, read_rank_receipt(local))
    return Distance(
        candidate=candidate,
        reference=reference,
        relative_l2=body.relative_l2,
        max_abs=body.max_abs,
    )
