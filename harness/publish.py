"""A folder for any static host, made from kept evidence: page, data, cards, how to check it."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
from harness import standalone
from harness.closing import ClosingRecord
from harness.display import words
from harness.errors import BadInput
from harness.plan.plan import REFERENCE
from harness.report.drawing import seen
from harness.report.evidence import Case, Evidence
from harness.report.load import load_evidence
from harness.report.recount import recount
from harness.seal.extract import extract
from harness.strict import load_file
from harness.verify import ARCHIVE, verify
from harness.verify.sums import write_sums
from harness.whole_folder import whole_folder
from trainer import contract

RECORD = (ARCHIVE, "closing.json", "results.json", "resources.json")
FROM_ARCHIVE = (
    "plan.json", "prepared.json", "selection.json", "commits.json", "commits", "trees",
    "environments",
)  # fmt: skip
LICENCES = ("LICENSE", "NOTICE")


def publish(evidence_folder: Path, into: Path) -> Path:
    """Verify the evidence, then write the folder `into`. Raises BadInput when it is there."""
    if into.exists():
        raise BadInput("is there already; what was published is not replaced", where=str(into))
    verify(evidence_folder)
    closing = load_file(ClosingRecord, evidence_folder / "closing.json")
    with whole_folder(into) as part:
        with tempfile.TemporaryDirectory(prefix="harness-publish-") as work:
            members = Path(work) / "members"
            extract(evidence_folder / ARCHIVE, members, expected_tar_sha256=closing.archive.sha256)
            _copy(evidence_folder, members, part)
            evidence = load_evidence(members, evidence_folder / "closing.json")
        _write(part, evidence, closing)
        write_sums(part)
    return into


def _copy(folder: Path, members: Path, part: Path) -> None:
    shutil.copytree(folder / "report", part, dirs_exist_ok=True)
    for name in RECORD:
        shutil.copyfile(folder / name, part / name)
    for name in FROM_ARCHIVE:
        source = members / name
        if source.is_dir():
            shutil.copytree(source, part / name)
        elif source.is_file():
            shutil.copyfile(source, part / name)
    requirements = members / "source" / "trainer" / "requirements.txt"
    if requirements.is_file():
        shutil.copyfile(requirements, part / "requirements.txt")
    shutil.copyfile(Path(standalone.__file__), part / "verify.py")
    for name in LICENCES:
        (part / name).write_bytes(_licence(name))


def _licence(name: str) -> bytes:
    """Harness's own LICENSE or NOTICE: beside the source tree, else in the installed wheel."""
    beside = Path(harness.__file__).parent.parent / name
    if beside.is_file():
        return beside.read_bytes()
    for file in importlib.metadata.files("harness") or ():
        if file.name == name:
            return file.read_binary()
    raise BadInput(f"the installed Harness has no {name}, which must go with what it made")


def _write(part: Path, evidence: Evidence, closing: ClosingRecord) -> None:
    texts = {"README.md": _readme(evidence, closing), "THIRD-PARTY.md": _third_party(evidence)}
    for model in evidence.models:
        if recount(evidence, model).overall is not None:
            (part / "answers").mkdir(exist_ok=True)
            contract.write_lines(
                part / "answers" / f"samples_{model}.jsonl", _samples(evidence, model)
            )
            if model != REFERENCE:
                texts[f"cards/{model}.md"] = _card(evidence, model)
    for name, text in texts.items():
        path = part / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(seen(text), encoding="utf-8", newline="\n")


def _samples(evidence: Evidence, model: str) -> Iterator[dict[str, Any]]:
    """One line a case, with the fields of lm-evaluation-harness's samples files."""
    for number, case in enumerate(evidence.cases):
        answer = case.answers.get(model)
        if answer is not None:
            yield {
                "doc_id": number,
                "doc": _doc(case),
                "target": case.expected or "",
                "arguments": [[case.prompt or "", {"until": [], "do_sample": False}]],
                "resps": [[answer.text]],
                "filtered_resps": [answer.text],
                "metrics": ["exact_match", "valid_json"],
                "exact_match": float(answer.correct),
                "valid_json": float(answer.valid_json),
                "reason": answer.reason,
            }


def _doc(case: Case) -> dict[str, Any]:
    return {"id": case.id, "family": case.family, "wording": case.wording}


def _readme(evidence: Evidence, closing: ClosingRecord) -> str:
    return f"""# {evidence.plan.name}
{evidence.plan.question}

`index.html` is the report, `answers.html` every prompt with every answer; both open without a
server. `report.json` and `results.json` hold the figures, `resources.json` the bound on the cost,
`answers/` the answers a line each, `cards/` a card a candidate.

## Check it
With Python 3.11 or newer and nothing else: digests, order of the commitments, counts, decisions.
```
python3 verify.py .
```
With Harness, also the second reading of every input and answer:
```
harness verify evidence.tar.gz
```
The archive's identity is the SHA-256 of its uncompressed tar:
```
gunzip -c evidence.tar.gz | sha256sum     # {closing.archive.sha256}
```
Neither shows that the candidates answer so (the neural computation), nor when the commits were
made (the clock).

Weights are not here. Their files are named by hash in `selection.json` and were read back from
the study's store. `commits.json`, `commits/` and `trees/` are the git objects of the commitments;
`plan.json` is the plan as it was committed.
"""


def _third_party(evidence: Evidence) -> str:
    plan = evidence.plan
    lines = [
        "# What this study was made from",
        "The plan names every source; their own licences hold for what comes from them.",
        f"- Seed model: `{json.dumps(plan.model.to_json(), sort_keys=True)}`",
        f"- Tokenizer: `{json.dumps(plan.tokenizer.to_json(), sort_keys=True)}`",
    ]
    if plan.data.replay is not None:
        lines.append(f"- Replay: `{json.dumps(plan.data.replay.to_json(), sort_keys=True)}`")
    for probes in plan.data.retention:
        source = json.dumps(probes.source.to_json(), sort_keys=True)
        lines.append(f"- Retention probes {probes.name}: `{source}`")
    lines += [
        "",
        "Modified: the candidates are the seed model with its weights trained further, as the "
        "plan's recipe says. Report, scores and archive were made by Harness (LICENSE, NOTICE). "
        "The distributions of every host are in environments/.",
    ]
    return "\n".join(lines) + "\n"


def _card(evidence: Evidence, model: str) -> str:
    found, before = recount(evidence, model), recount(evidence, REFERENCE)
    result = next(each for each in evidence.results.models if each.name == model)
    arm = evidence.plan.arm(model)
    lines = [
        f"# {model}, a candidate of {evidence.plan.name}",
        f"Run {evidence.results.run}. Trained by {arm.workers} worker(s), exchange "
        f"{arm.exchange.kind}, corpus {arm.corpus}. Parameter root `{result.parameter_root}`.",
        "",
        "| test cases | untrained | this candidate |",
        "|---|---|---|",
    ]
    rows = [
        ("all", before.overall, found.overall),
        ("valid JSON", before.valid_json, found.valid_json),
    ]
    rows += [(name, before.families.get(name), each) for name, each in found.families.items()]
    rows.append(("held-out wordings", before.held_out, found.held_out))
    for name, one, two in rows:
        shown = [f"{t.correct} / {t.cases}" if t else words.NOT_RUN for t in (one, two)]
        lines.append(f"| {name} | {shown[0]} | {shown[1]} |")
    for name, loss in found.retention.items():
        was = before.retention.get(name)
        shown_was = words.NOT_RUN if was is None else words.loss(was)
        lines.append(f"| loss on {name}, nats | {shown_was} | {words.loss(loss)} |")
    lines += ["", "## Decisions that name it"]
    lines += [
        f"- {d.name}: {d.claim} {'passed' if d.passed else 'failed'}"
        f"{' (exploratory)' if d.exploratory else ''}"
        for d in evidence.results.decisions
        if model in (d.candidate, d.reference)
    ]
    lines += ["", "## Limits", *(f"- {sentence}" for sentence in evidence.limits)]
    lines.append("- One training seed; intervals speak of cases, not of training runs.")
    return "\n".join(lines) + "\n"
