"""Are the scored inputs exactly the questions, and do the expected answers follow from them?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.plan import Plan
from harness.validation.chat import ANSWER_OPENS, reader, rendered, spoken
from harness.validation.report import Findings, ValidationReport, same
from harness.validation.solving import solve
from trainer.contract import canonical, hash_of

ANSWER = ("id", "family", "wording", "prompt", "expected")


def check_prompts(
    plan: Plan,
    inputs: Path,
    tokenizer_json: Path,
    *,
    roles: Sequence[str] = ("development", "test"),
) -> ValidationReport:
    """Compare every case of the roles with the operator-side text. `inputs`: prepared folder."""
    findings, tokenizer = Findings(), reader(tokenizer_json)
    trained = {row["id"] for row in findings.lines(inputs / "text.clean.jsonl", "id")}
    seen: dict[str, str] = dict.fromkeys(trained, "train")
    for role in roles:
        cases = findings.lines(inputs / f"{role}.cases.jsonl", "id", "tokens")
        answers = findings.lines(inputs / f"{role}.answers.jsonl", *ANSWER)
        wanted = getattr(plan.data.roles, role)
        findings.expect(
            "cases in a role",
            len(cases) == len(answers) == wanted,
            f"{role} has {len(cases)} cases and {len(answers)} answers; the plan says {wanted}",
        )
        for case, known in zip(cases, answers, strict=False):
            where = f"{role} case {str(case['id'])[:16]}"
            before = seen.setdefault(known["id"], role)
            findings.expect(
                "cases in one role only", before == role, f"{where} is also in {before}"
            )
            with findings.form(where):
                _check_case(findings, plan, tokenizer, where, case, known)
    return findings.report()


def _check_case(
    findings: Findings, plan: Plan, tokenizer: Any, where: str, case: Any, known: Any
) -> None:
    expect, tokens, answer = findings.expect, case["tokens"], canonical(known["expected"]).decode()
    expect("case alignment", case["id"] == known["id"], f"{where} stands beside another answer")
    expect("inputs without targets", sorted(case) == ["id", "tokens"], f"{where} has more fields")
    body = {key: known[key] for key in ("family", "prompt", "wording")}
    own_id = hash_of({**body, "answer": known["expected"]})
    expect(
        "ids from content", own_id == known["id"], f"{where} has content of the id {own_id[:16]}"
    )
    user = rendered([{"role": "user", "content": known["prompt"]}], plan.chat.system)
    whole = f"{user}\n{ANSWER_OPENS}"
    again = tokenizer.encode(whole, add_special_tokens=False).ids
    expect("prompts tokenised again", again == tokens, f"{where} tokenises differently")
    expect("prompts decoded", spoken(tokenizer, tokens) == whole, f"{where} decodes differently")
    text = spoken(tokenizer, tokens)
    expect(
        "inputs that end before the answer",
        text.endswith(ANSWER_OPENS) and text.count(ANSWER_OPENS) == 1 and answer not in text,
        f"{where} holds its answer or does not end where the answer begins",
    )
    expect(
        "answer tokens absent from inputs",
        not _holds(tokens, tokenizer.encode(answer, add_special_tokens=False).ids),
        f"{where} holds the tokens of its answer",
    )
    expect(
        "expected answers solved again",
        same(solve(known["family"], known["prompt"]), known["expected"]),
        f"{where} has another right answer than its table gives",
    )


def _holds(tokens: list[int], part: list[int]) -> bool:
    size = len(part)
    return any(tokens[at : at + size] == part for at in range(len(tokens) - size + 1))
