"""A folder for any static host, made from kept evidence: page, data, cards, how to check it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import standalone
from harness.attribution import OWN, own_licence, parts_of, seed_licence, third_party
from harness.closing import ClosingRecord
from harness.display import words
from harness.errors import BadInput
from harness.fetch import fetch
from harness.finding import run_folder
from harness.plan.plan import REFERENCE
from harness.report.drawing import seen
from harness.report.evidence import Case, Evidence
from harness.report.load import load_evidence
from harness.report.recount import recount
from harness.seal.extract import extract
from harness.selection import Selection
from harness.strict import load_file, read_plain
from harness.verify import ARCHIVE, verify
from harness.verify.sums import write_sums
from harness.whole_folder import whole_folder
from trainer import contract

RECORD = (ARCHIVE, "closing.json", "results.json", "resources.json")
FROM_ARCHIVE = (
    "plan.json", "prepared.json", "selection.json", "commits.json", "commits", "trees",
    "environments",
)  # fmt: skip
LICENCE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Weights:
    """Candidates whose weights are published too, out of a run's store."""

    arms: tuple[str, ...] = ()
    """'all': every arm."""
    run: Path | None = None
    """The run's folder; None: nothing is asked for."""


NO_WEIGHTS = Weights()


def run_of(evidence_folder: Path, runs: Path) -> Path:
    """The folder of the run that made the evidence. Raises BadInput when it is not here."""
    if (evidence_folder / "journal.jsonl").exists():
        return evidence_folder
    closing = load_file(ClosingRecord, evidence_folder / "closing.json")
    return run_folder(runs / closing.plan / closing.run, runs)


def publish(
    evidence_folder: Path,
    into: Path,
    *,
    weights: Weights = NO_WEIGHTS,
    licences: Sequence[Path] = (),
) -> Path:
    """Verify the evidence, then write the folder `into`.

    Raises BadInput when it is there, or when weights are asked for and the licence of the model
    that they derive from is neither known nor given.
    """
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
            arms = _arms(evidence, weights, licences)
            _weights(members, part, weights, arms)
        texts = _licences(part, licences)
        _write(part, evidence, closing, arms)
        (part / "THIRD-PARTY.md").write_text(
            seen(third_party(evidence.plan, texts, arms)), encoding="utf-8", newline="\n"
        )
        write_sums(part)
    return into


def _arms(evidence: Evidence, weights: Weights, licences: Sequence[Path]) -> tuple[str, ...]:
    """The candidates whose weights travel. Raises BadInput."""
    known = tuple(arm.name for arm in evidence.results.arms)
    arms = known if "all" in weights.arms else tuple(dict.fromkeys(weights.arms))
    for arm in arms:
        if arm not in known:
            raise BadInput(
                f"no arm '{arm}' was trained; there are {', '.join(known)}", where="--weights"
            )
    if arms and not licences and not seed_licence(evidence.plan):
        raise BadInput(
            "the licence of the seed model is not known, and weights derive from it; add its text "
            "with --licence FILE",
            where="--weights",
        )
    return arms


def _weights(members: Path, part: Path, weights: Weights, arms: tuple[str, ...]) -> None:
    """candidates/ARM/: the files that the selection names, by their hashes."""
    if not arms:
        return
    if weights.run is None:
        raise BadInput("needs the run whose store has them", where="--weights")
    selection = load_file(Selection, members / "selection.json")
    for arm in arms:
        fetch(weights.run, part, "candidates", arm=arm)
        folder = part / "candidates" / arm
        told = {each.name: each.sha256 for each in selection.candidates[arm].files}
        found = {path.name: contract.hash_file(path)[0] for path in folder.iterdir()}
        if found != told:
            raise BadInput(f"the run's '{arm}' is not the one that the evidence selected",
                           where=str(weights.run))  # fmt: skip


def _licences(part: Path, licences: Sequence[Path]) -> tuple[str, ...]:
    """licences/NAME of the texts that the publisher added."""
    for path in licences:
        try:
            data = read_plain(path, limit=LICENCE_BYTES)
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", where=str(path)) from None
        target = part / "licences" / path.name
        if target.exists():
            raise BadInput("another licence has this name", where=str(path))
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
    return tuple(path.name for path in licences)


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
    for name in OWN:
        (part / name).write_bytes(own_licence(name))


def _write(part: Path, evidence: Evidence, closing: ClosingRecord, arms: tuple[str, ...]) -> None:
    texts = {"README.md": _readme(evidence, closing, arms)}
    for model in evidence.models:
        if recount(evidence, model).overall is not None:
            (part / "answers").mkdir(exist_ok=True)
            contract.write_lines(
                part / "answers" / f"samples_{model}.jsonl", _samples(evidence, model)
            )
            if model != REFERENCE:
                texts[f"cards/{model}.md"] = _card(evidence, model)
            if model in arms:
                texts[f"candidates/{model}/README.md"] = texts[f"cards/{model}.md"]
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


def _readme(evidence: Evidence, closing: ClosingRecord, arms: tuple[str, ...]) -> str:
    here = (
        f"Weights of {', '.join(arms)} are in `candidates/`." if arms else "Weights are not here."
    )
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

{here} The files of every candidate are named by hash in `selection.json`; they were read back from
the study's store. Sources, licences and what was changed: THIRD-PARTY.md. `commits.json`,
`commits/` and `trees/` are the git objects of the commitments; `plan.json` is the plan as it was
committed.
"""


def _card(evidence: Evidence, model: str) -> str:
    found, before = recount(evidence, model), recount(evidence, REFERENCE)
    result = next(each for each in evidence.results.models if each.name == model)
    arm, upstream = evidence.plan.arm(model), next(parts_of(evidence.plan))
    lines = [
        f"# {model}, a candidate of {evidence.plan.name}",
        f"Run {evidence.results.run}. Trained by {arm.workers} worker(s), exchange "
        f"{arm.exchange.kind}, corpus {arm.corpus}. Parameter root `{result.parameter_root}`.",
        f"Modified from: {upstream.source} ({upstream.licence or 'licence: see the source'}); "
        "every parameter was trained further, configuration and tokenizer are unchanged.",
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
