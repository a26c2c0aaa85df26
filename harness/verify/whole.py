"""All that can be checked again without the machines, in numbered steps.

1. Digests: SHA256SUMS where it is there; the archive's envelope, tar, index and every member; the
   tar's hash against closing.json.
2. Schemas: every file is read by its strict model.
3. Inputs and source: their hashes are those that prepared.json committed to.
4. Commitments: raw git objects give the names that were recorded, hold the archive's files, and the
   selection's commit leads back to the plan's; what was scored is what the selection names.
   A folder that stands in a repository is also looked for in its history.
   Where they are signed or time-stamped, signature and stamp hold.
5. Scores: every answer is decoded and scored again, by both code paths.
6. Statistics: counts, measurements and decisions are worked out again.
7. The report is built again and compared: byte for byte, or figure by figure with the report of an
   older reporter.

Raises BadInput naming the first thing that differs. What cannot be shown this way is said.
"""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.closing import ClosingRecord
from harness.errors import BadInput
from harness.receipts import EvaluateReceipt
from harness.report.build import build_report
from harness.report.evidence import Evidence
from harness.report.load import load_evidence
from harness.report.numbers import numbers
from harness.seal.extract import extract
from harness.seal.index import Index
from harness.strict import Model, load_file
from harness.validation.everything import check_everything
from harness.validation.report import ValidationReport, merge
from harness.verify.attested import NOTHING, Trust, check_attested
from harness.verify.inputs import check_inputs
from harness.verify.order import check_commitments, check_selection
from harness.verify.rebuilt import compare_report
from harness.verify.scored import check_scored
from harness.verify.standing import check_standing
from harness.verify.sums import SUMS, WORDS, check_sums

ARCHIVE = "evidence.tar.gz"
CANNOT = (
    "the neural computation: that the candidates answer so, and were trained so",
    "that nothing ran outside the record",
)


class Verified(Model):
    """What was checked."""

    archive_sha256: str
    """Of the uncompressed tar."""
    files: dict[str, str]
    """Hash of every recomputed file, all equal to the kept ones; empty for an archive alone."""
    lines: tuple[str, ...]
    cannot: tuple[str, ...]
    """What the evidence does not prove, a phrase each."""


@dataclass(frozen=True)
class _Opened:
    """An archive that was unpacked and read."""

    index: Index
    evidence: Evidence
    lines: tuple[str, ...]
    cannot: tuple[str, ...]


def verify(path: Path, trust: Trust = NOTHING) -> Verified:
    """Check a run's folder, evidence/NAME, or an archive alone (its closing record is then 'not
    run' and its report is not compared). `trust` is what the reader knows of signer and authority.
    """
    if path.is_dir():
        return _folder(path, trust)
    with tempfile.TemporaryDirectory(prefix="harness-verify-") as work:
        opened = _open(path, Path(work) / "evidence", None, None, trust)
        build_report(opened.evidence, raster=False)
    tar = _tar_sha256(path)
    return Verified(
        archive_sha256=tar,
        files={},
        lines=(f"archive   {tar}", *opened.lines),
        cannot=(
            *CANNOT,
            *opened.cannot,
            "preservation, teardown and cost: an archive alone has no closing record",
            "that this archive is the one that was sealed: compare its hash with closing.json",
        ),
    )


def _folder(folder: Path, trust: Trust) -> Verified:
    sums = check_sums(folder)
    closing_path = folder / "closing.json"
    closing = load_file(ClosingRecord, closing_path, next_command="harness keep RUN")
    with tempfile.TemporaryDirectory(prefix="harness-verify-") as work:
        unpacked = Path(work) / "evidence"
        opened = _open(folder / ARCHIVE, unpacked, closing.archive.sha256, closing_path, trust)
        compared = compare_report(folder, unpacked, opened.evidence, closing)
    standing = check_standing(folder, opened.evidence.commits)
    cannot = [*CANNOT, *opened.cannot, *standing.cannot]
    if sums is None:
        cannot.append(f"figures as PNG and PDF: there is no {SUMS} (harness keep writes it)")
    if closing.preservation is not None and closing.preservation.not_kept:
        cannot.append("that the candidates' weights exist: they are not kept, their roots are")
    if (folder / WORDS).exists():
        cannot.append(f"{WORDS}: the words of whoever keeps this, which nothing here checks")
    first = () if sums is None else (f"digests   {sums} files are those of {SUMS}",)
    return Verified(
        archive_sha256=closing.archive.sha256,
        files=compared.hashes,
        lines=(
            *first,
            f"archive   {closing.archive.sha256}  matches closing.json",
            *opened.lines,
            *standing.lines,
            *(f"report    {digest}  {name}" for name, digest in compared.hashes.items()),
            compared.sentence,
        ),
        cannot=tuple(cannot),
    )


def _open(
    archive: Path, unpacked: Path, expected: str | None, closing: Path | None, trust: Trust
) -> _Opened:
    index = extract(archive, unpacked, expected_tar_sha256=expected)
    evidence = load_evidence(unpacked, closing)
    inputs = check_inputs(unpacked, evidence.prepared)
    order = check_commitments(unpacked, evidence.commits)
    attested, unattested = check_attested(unpacked, evidence, trust)
    _check_selected(unpacked, evidence)
    answers = check_scored(evidence)
    checks, cannot = _second_reading(unpacked, evidence)
    found = numbers(evidence).disagreements
    if found:
        raise BadInput(_first(found, "results.json"), where=str(archive))
    return _Opened(
        index,
        evidence,
        (
            f"members   {len(index.members)} files, each with its hash",
            *inputs,
            *order.lines,
            *attested,
            f"answers   {answers} scored again, the same",
            *checks,
            f"decisions {len(evidence.results.decisions)} worked out again, the same",
        ),
        (*unattested, *order.cannot, *cannot),
    )


def _check_selected(unpacked: Path, evidence: Evidence) -> None:
    receipt = evidence.receipt(EvaluateReceipt)
    if receipt is None:
        return
    scored = {model.name: model.parameter_root for model in receipt.models}
    named = {result.name: result.parameter_root for result in evidence.results.models}
    whole = set(scored) == set(evidence.plan.models)
    if scored != named or not (whole or evidence.results.incomplete):
        raise BadInput("results.json names other models than were scored", where=str(unpacked))
    if evidence.commits:
        check_selection(
            unpacked, plan_hash=evidence.plan_hash, identity=evidence.prepared.identity,
            scored=scored,
        )  # fmt: skip


def _second_reading(unpacked: Path, evidence: Evidence) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not (unpacked / "tokenizer.json").is_file():
        return (), ("that token ids are these words: the archive holds no tokenizer.json",)
    found = merge(_readings(unpacked, evidence))
    if found.disagreements:
        raise BadInput(_first(found.disagreements, "the second reading"), where=str(unpacked))
    made = sum(check.count for check in found.checks)
    return (f"readings  {made} independent checks of {len(found.checks)} kinds agree",), ()


def _readings(unpacked: Path, evidence: Evidence) -> Iterator[ValidationReport]:
    if evidence.results.incomplete is None:
        return check_everything(evidence.plan, unpacked)
    return check_everything(
        evidence.plan,
        unpacked,
        models=[model.name for model in evidence.results.models],
        arms=[arm.name for arm in evidence.results.arms],
    )


def _tar_sha256(archive: Path) -> str:
    """Of an archive that was extracted, and so is within the caps."""
    with gzip.open(archive) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _first(sentences: Sequence[str], where: str) -> str:
    more = f" (and {len(sentences) - 1} more)" if len(sentences) > 1 else ""
    return f"{where} disagrees with the evidence: {sentences[0]}{more}"
