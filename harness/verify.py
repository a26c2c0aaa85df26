"""Recompute a report from its evidence, offline: archive and closing record in, same bytes out."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness.closing import ClosingRecord
from harness.errors import BadInput
from harness.report.build import build_report
from harness.report.load import load_evidence
from harness.seal.extract import extract
from harness.strict import Model, load_file
from trainer import contract

ARCHIVE = "evidence.tar.gz"


class Verified(Model):
    """What was checked."""

    archive_sha256: str
    files: dict[str, str]
    """Hash of every recomputed file, all equal to the kept ones."""
    lines: tuple[str, ...]


def verify(folder: Path) -> Verified:
    """Raises BadInput naming the first thing that differs.

    1. the archive's tar has the hash that closing.json names, and its members are the index's;
    2. report.json, the pages and the SVG figures are computed again from the two;
    3. each is compared with the kept one, byte for byte.
    """
    closing = load_file(ClosingRecord, folder / "closing.json", next_command="harness keep RUN")
    with tempfile.TemporaryDirectory(prefix="harness-verify-") as work:
        unpacked = Path(work) / "evidence"
        extract(folder / ARCHIVE, unpacked, expected_tar_sha256=closing.archive.sha256)
        files = build_report(
            load_evidence(unpacked, folder / "closing.json"), raster=False
        ).portable
    hashes = {}
    for name, data in files.items():
        kept = folder / "report" / name
        if not kept.exists() or kept.read_bytes() != data:
            raise BadInput(
                "differs from what the evidence gives" if kept.exists() else "is missing",
                where=str(kept),
            )
        hashes[name] = contract.sha256(data)
    lines = (
        f"archive   {closing.archive.sha256}  matches closing.json",
        *(f"report    {digest}  {name}" for name, digest in hashes.items()),
        f"Recomputed {len(hashes)} files from the evidence; every byte is the same.",
    )
    return Verified(archive_sha256=closing.archive.sha256, files=hashes, lines=lines)
