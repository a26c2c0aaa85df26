"""Recompute a report from its evidence, offline: archive and closing record in, same bytes out."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness.closing import ClosingRecord
from harness.errors import BadInput
from harness.report.build import build_report
from harness.report.load import load_evidence
from harness.seal.extract import extract
from harness.strict import Model, load_file, read_plain
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
    3. each is compared with the kept one, byte for byte, and so are results.json (the archive's)
       and resources.json (the closing record's); report/ holds nothing else but their pictures.
    """
    closing = load_file(ClosingRecord, folder / "closing.json", next_command="harness keep RUN")
    with tempfile.TemporaryDirectory(prefix="harness-verify-") as work:
        unpacked = Path(work) / "evidence"
        extract(folder / ARCHIVE, unpacked, expected_tar_sha256=closing.archive.sha256)
        files = build_report(
            load_evidence(unpacked, folder / "closing.json"), raster=False
        ).portable
        results = (unpacked / "results.json").read_bytes()
    hashes = {name: _same(folder / "report" / name, data) for name, data in files.items()}
    _same(folder / "results.json", results)
    _same(folder / "resources.json", contract.canonical(closing.resources.to_json()) + b"\n")
    _nothing_else(folder / "report", set(files))
    lines = (
        f"archive   {closing.archive.sha256}  matches closing.json",
        *(f"report    {digest}  {name}" for name, digest in hashes.items()),
        f"Recomputed {len(hashes)} files from the evidence; every byte is the same.",
    )
    return Verified(archive_sha256=closing.archive.sha256, files=hashes, lines=lines)


def _same(kept: Path, data: bytes) -> str:
    """The hash of a kept file that holds exactly `data`. Raises BadInput."""
    try:
        found = read_plain(kept, limit=len(data))
    except FileNotFoundError:
        raise BadInput("is missing", where=str(kept)) from None
    except (OSError, BadInput):
        found = None
    if found != data:
        raise BadInput("differs from what the evidence gives", where=str(kept))
    return contract.sha256(data)


def _nothing_else(report: Path, names: set[str]) -> None:
    """Raises BadInput for a file of the report that the evidence does not give.

    A figure's PNG and PDF are left alone: they are the same only in the pinned environment.
    """
    pictures = {str(Path(name).with_suffix(end)) for name in names for end in (".png", ".pdf")}
    for path in sorted(report.rglob("*")):
        if not path.is_dir() and path.relative_to(report).as_posix() not in names | pictures:
            raise BadInput("is no part of what the evidence gives", where=str(path))
