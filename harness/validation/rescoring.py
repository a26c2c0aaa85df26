"""Are the recorded scores what the generated tokens deserve?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.plan import Plan
from harness.validation.chat import reader, spoken
from harness.validation.grammar import Malformed, Value, read
from harness.validation.report import Findings, ValidationReport


def check_scores(
    plan: Plan,
    inputs: Path,
    tokenizer_json: Path,
    *,
    model: str,
    role: str,
    answers: Path,
    scores: Path,
) -> ValidationReport:
    """Decode answers-ROLE.jsonl, judge each answer anew, compare with scores.jsonl.

    `scores` may hold other roles too: {id, role, family, wording, correct, valid_json} a line.
    """
    findings, tokenizer = Findings(), reader(tokenizer_json)
    expected = findings.lines(
        inputs / f"{role}.answers.jsonl", "id", "family", "wording", "expected"
    )
    given = findings.lines(answers, "id", "tokens", "stopped")
    recorded = [row for row in findings.lines(scores, "id", "role") if row.get("role") == role]
    order = [known["id"] for known in expected]
    findings.expect(
        "cases that are scored",
        len(order) == getattr(plan.data.roles, role),
        f"{model}: {len(order)} answers are expected for {role}, the plan has another number",
    )
    for name, rows in (("answers", given), ("scores", recorded)):
        findings.expect(
            "case alignment of answers and scores",
            [row.get("id") for row in rows] == order,
            f"{model}: the {name} of {role} are not the cases in their order",
        )
    by_id = {row.get("id"): row for row in recorded}
    said = {row.get("id"): row for row in given}
    for known in expected:
        where = f"{model}, {role} case {known['id'][:16]}"
        if known["id"] not in said or known["id"] not in by_id:
            continue
        with findings.form(where):
            _check_length(findings, plan, where, said[known["id"]])
            text = spoken(tokenizer, said[known["id"]]["tokens"])
            _compare(findings, plan, where, text, known, by_id[known["id"]])
    return findings.report()


def _check_length(findings: Findings, plan: Plan, where: str, row: Any) -> None:
    count, limit = len(row["tokens"]), plan.evaluation.max_new_tokens
    fine = count <= limit and (row["stopped"] == "end" or count == limit)
    findings.expect(
        "answers within the token limit", fine, f"{where}: {count} tokens, stopped {row['stopped']}"
    )


def _compare(findings: Findings, plan: Plan, where: str, text: str, known: Any, row: Any) -> None:
    valid, right = judge(text, known["expected"], plan.evaluation.max_answer_bytes)
    findings.expect(
        "validity judged again",
        row.get("valid_json") is valid,
        f"{where} is recorded as {'' if row.get('valid_json') else 'not '}valid JSON",
    )
    findings.expect(
        "answers scored again",
        row.get("correct") is right,
        f"{where} is recorded as {'right' if row.get('correct') else 'wrong'}",
    )
    labels = all(row.get(key) == known[key] for key in ("family", "wording"))
    findings.expect("labels of scores", labels, f"{where} is recorded with other labels")


def judge(text: str, expected: Any, max_bytes: int) -> tuple[bool, bool]:
    """(one strict JSON object within the size, equal to what was expected)."""
    try:
        if len(text.encode()) > max_bytes:
            return False, False
        kind, members = read(text)
    except (Malformed, UnicodeEncodeError):
        return False, False
    if kind != "object":
        return False, False
    return True, matches(("object", members), expected)


def matches(value: Value, expected: Any) -> bool:
    """Whether what was read is the expected JSON value, types included."""
    kind, inner = value
    if isinstance(expected, dict):
        return (
            kind == "object"
            and inner.keys() == expected.keys()
            and all(matches(inner[key], wanted) for key, wanted in expected.items())
        )
    if isinstance(expected, list):
        return (
            kind == "array" and len(inner) == len(expected) and all(map(matches, inner, expected))
        )
    if expected is None or isinstance(expected, bool):
        return kind == "word" and inner is expected
    kinds = {str: "string", int: "integer", float: "real"}
    return kind == kinds[type(expected)] and bool(inner == expected)
