"""Are exactly the assistant's words trained on, with the declared weights, order and damage?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from harness.plan import Plan
from harness.validation.chat import ANSWER_CLOSES, ANSWER_OPENS, reader, rendered, spoken
from harness.validation.report import Findings, ValidationReport, same
from harness.validation.solving import solve
from trainer.contract import ContractError, parse

DOCUMENT = ("id", "tokens", "targets")
TEXT = ("id", "kind", "family", "messages", "damaged")


def check_masks(plan: Plan, inputs: Path, tokenizer_json: Path) -> ValidationReport:
    """Check training documents, retention documents and the schedule of a prepared folder."""
    findings, tokenizer = Findings(), reader(tokenizer_json)
    texts: dict[str, list[Any]] = {}
    for corpus in ["clean"] + ["damaged"] * (plan.data.damage is not None):
        rows = findings.lines(inputs / f"train.{corpus}.jsonl", "kind", "weight", *DOCUMENT)
        texts[corpus] = findings.lines(inputs / f"text.{corpus}.jsonl", *TEXT)
        _check_documents(findings, plan, tokenizer, f"train.{corpus}", rows, texts[corpus])
        with findings.form(f"train.{corpus}"):
            _check_weights(findings, plan, corpus, rows)
    with findings.form("the texts"):
        _check_damage(findings, plan, texts)
    for probes in plan.data.retention:
        name = f"retention.{probes.name}"
        rows = findings.lines(inputs / f"{name}.jsonl", *DOCUMENT)
        known = findings.lines(inputs / f"text.{name}.jsonl", *TEXT)
        findings.expect(
            "probes in a set", len(rows) == probes.count, f"{name} has {len(rows)} documents"
        )
        _check_documents(findings, plan, tokenizer, name, rows, known)
    with findings.form("the schedule"):
        _check_schedule(findings, plan, inputs, len(texts["clean"]))
    return findings.report()


def _check_documents(
    findings: Findings, plan: Plan, tokenizer: Any, name: str, rows: list[Any], texts: list[Any]
) -> None:
    findings.expect(
        "documents beside texts",
        [row["id"] for row in rows] == [text["id"] for text in texts],
        f"{name} and its texts have different ids",
    )
    for row, text in zip(rows, texts, strict=False):
        where = f"{name} {str(row['id'])[:16]}"
        with findings.form(where):
            _check_document(findings, plan, tokenizer, where, row, text)


def _check_document(
    findings: Findings, plan: Plan, tokenizer: Any, where: str, row: Any, text: Any
) -> None:
    ids, turns = row["tokens"], text["messages"]
    if turns[0]["role"] == "text":
        fine, whole = row["targets"] == [[1, len(ids)]], turns[0]["content"]
    else:
        fine, whole = _answers_only(tokenizer, row, turns), rendered(turns, plan.chat.system)
    findings.expect("target masks decoded", fine, f"{where} has targets other than the answers")
    findings.expect(
        "documents decoded", spoken(tokenizer, ids) == whole, f"{where} decodes differently"
    )
    limit = plan.recipe.context_tokens
    findings.expect("documents within the context", len(ids) <= limit, f"{where} is too long")


def _answers_only(tokenizer: Any, row: Any, turns: Any) -> bool:
    """The spans are the assistant's contents, each up to and with a real end token."""
    ids, spans, closing = row["tokens"], row["targets"], tokenizer.token_to_id(ANSWER_CLOSES)
    words = [turn["content"] + ANSWER_CLOSES for turn in turns if turn["role"] == "assistant"]
    return (
        [spoken(tokenizer, ids[a:b]) for a, b in spans] == words
        and all(spoken(tokenizer, ids[:a]).endswith(ANSWER_OPENS) for a, _ in spans)
        and all(ids[b - 1] == closing for _, b in spans)
    )


def _check_weights(findings: Findings, plan: Plan, corpus: str, rows: list[Any]) -> None:
    weights = {"task": plan.data.weights.task, "replay": plan.data.weights.replay}
    for row in rows:
        findings.expect(
            "declared weights",
            row["weight"] == weights.get(row["kind"]),
            f"train.{corpus} {row['id'][:16]} has the weight {row['weight']}",
        )
    kinds = Counter(row["kind"] for row in rows)
    wanted = {"task": plan.data.roles.all_tasks, "replay": plan.data.roles.train_replay}
    findings.expect(
        "documents of each kind",
        all(kinds[kind] == number for kind, number in wanted.items()),
        f"train.{corpus} has {dict(kinds)} documents; the plan says {wanted}",
    )


def _check_damage(findings: Findings, plan: Plan, texts: dict[str, list[Any]]) -> None:
    """Clean answers are right; the damaged ones are wrong just where the rule says."""
    rule = plan.data.damage
    for text in texts["clean"]:
        if text["kind"] == "task":
            where = f"train.clean {text['id'][:16]}"
            right = same(_answer(text), solve(text["family"], text["messages"][0]["content"]))
            findings.expect("clean targets solved again", right, f"{where} has a wrong target")
    for clean, other in zip(texts["clean"], texts.get("damaged", ()), strict=False):
        hit = (
            rule is not None
            and clean["kind"] == "task"
            and int(clean["id"], 16) % rule.modulus == rule.remainder
        )
        where = f"train.damaged {clean['id'][:16]}"
        findings.expect(
            "damage where it is declared",
            other["damaged"] == hit and same(clean["messages"], other["messages"]) != hit,
            f"{where} is {'not ' if hit else ''}damaged",
        )
        if hit:
            alike = _form(_answer(clean)) == _form(_answer(other))
            findings.expect(
                "damaged targets of the same form",
                alike and same(clean["messages"][:-1], other["messages"][:-1]),
                f"{where} changes more than the answer's values",
            )


def _answer(text: Any) -> Any:
    try:
        return parse(text["messages"][-1]["content"])
    except ContractError:
        return None


def _form(answer: Any) -> Any:
    """Keys, with lists told from single values; null stands for any single value."""
    if not isinstance(answer, dict):
        return None
    return {key: isinstance(value, list) for key, value in answer.items()}


def _check_schedule(findings: Findings, plan: Plan, inputs: Path, documents: int) -> None:
    found = findings.value(inputs / "schedule.json")
    updates = found["updates"] if isinstance(found, dict) else []
    wanted = plan.recipe.updates
    findings.expect(
        "updates in the schedule",
        len(updates) == wanted,
        f"the schedule has {len(updates)} updates",
    )
    used: Counter[int] = Counter()
    for number, update in enumerate(updates, start=1):
        fine = len(update) == plan.recipe.global_batch
        fine = fine and all(type(one) is int and 0 <= one < documents for one in update)
        findings.expect("documents of an update", fine, f"update {number} is not a global batch")
        used.update(update)
    counts = [used[one] for one in range(documents)]
    findings.expect(
        "even use of documents",
        not counts or max(counts) - min(counts) <= 1,
        f"documents are used {min(counts, default=0)} to {max(counts, default=0)} times",
    )
