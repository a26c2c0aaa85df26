"""Is what the serving receipt tells what the client wrote down, and do the phases agree so?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.plan import Plan
from harness.validation.report import Findings, ValidationReport
from trainer.contract import hash_of, parse

Told = dict[str, Any]


def check_served(plan: Plan, folder: Path) -> ValidationReport:
    """Read every phase's order and events against receipts/serve.json and the development cases;
    where results.json is there, count again how many answers had the same tokens."""
    findings = Findings()
    if plan.serving is None:
        return findings.report()
    receipt = findings.value(folder / "receipts" / "serve.json")
    with findings.form("receipts/serve.json"):
        if receipt["ran"]:
            _check_phases(findings, plan, folder, receipt)
    return findings.report()


def _check_phases(findings: Findings, plan: Plan, folder: Path, receipt: Told) -> None:
    cases = findings.lines(folder / "inputs" / "development.cases.jsonl", "id", "tokens")
    prompts = {row["id"]: row["tokens"] for row in cases}
    for phase in receipt["phases"]:
        with findings.form(f"phase {phase['name']}"):
            _check_phase(findings, plan, folder / "serving" / phase["name"], phase, prompts)
            for replica in phase["replicas"]:
                rank = replica.get("rank")
                findings.expect(
                    "weights of replicas",
                    rank is None or rank["model_root"] == receipt["parameter_root"],
                    f"phase {phase['name']}, {replica['host']}: other weights were served",
                )
    if (folder / "results.json").exists():
        _check_agreement(findings, receipt, findings.value(folder / "results.json"))


def _check_phase(
    findings: Findings, plan: Plan, place: Path, phase: Told, prompts: dict[str, list[int]]
) -> None:
    given = _answers(place / "events.jsonl") if phase.get("events") else {}
    asked = findings.value(place / "order.json")["requests"]
    fates = {fate["request"]: fate for fate in phase["fates"]}
    findings.expect(
        "served requests in the receipt",
        list(fates) == [one["request"] for one in asked] and given.keys() <= fates.keys(),
        f"phase {phase['name']}: the receipt tells of other requests than were ordered",
    )
    limit = plan.serving.max_new_tokens if plan.serving else 0
    for one in asked:
        where, fate = f"phase {phase['name']}, request {one['request'][:16]}", fates[one["request"]]
        findings.expect(
            "served prompts are development cases",
            one["case"] == fate["case"] and prompts.get(one["case"]) == one["tokens"],
            f"{where}: the prompt is not that of its case",
        )
        tokens = given.get(one["request"])
        told = None if tokens is None else hash_of(tokens)
        findings.expect(
            "served tokens in the receipt",
            fate.get("tokens_sha256") == told and fate.get("tokens", 0) == len(tokens or ()),
            f"{where}: the receipt tells other tokens than the client took",
        )
        findings.expect(
            "served answers within the token limit",
            len(tokens or ()) <= limit,
            f"{where}: {len(tokens or ())} tokens",
        )


def _answers(events: Path) -> dict[str, list[int]]:
    """Token ids by request. A torn last line is no line."""
    rows = [parse(line) for line in events.read_bytes().split(b"\n")[:-1] if line]
    return {row["request"]: row["answer"]["tokens"] for row in rows if row.get("answer")}


def _check_agreement(findings: Findings, receipt: Told, results: Any) -> None:
    """Counts of equal answers, from the hashes in the receipt alone."""
    heard: dict[str, dict[str, set[str]]] = {}
    for phase in receipt["phases"]:
        for fate in phase["fates"]:
            if "tokens_sha256" in fate:
                by_phase = heard.setdefault(fate["case"], {})
                by_phase.setdefault(phase["name"], set()).add(fate["tokens_sha256"])
    claims = {row["name"]: row for row in results.get("serving", ())}
    for phase in receipt["phases"]:
        compared = same = 0
        for fate in phase["fates"]:
            if "tokens_sha256" not in fate:
                continue
            elsewhere = {
                each
                for name, found in heard[fate["case"]].items()
                if name != phase["name"]
                for each in found
            }
            compared += bool(elsewhere)
            same += elsewhere == {fate["tokens_sha256"]}
        claim = claims.get(phase["name"], {})
        findings.expect(
            "token agreement counted again",
            (claim.get("compared"), claim.get("same_tokens")) == (compared, same),
            f"phase {phase['name']}: {same} of {compared} answers agree, results.json says "
            f"{claim.get('same_tokens')} of {claim.get('compared')}",
        )
