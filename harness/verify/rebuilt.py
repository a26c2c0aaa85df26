"""The report built again beside the kept one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.closing import ClosingRecord
from harness.errors import BadInput
from harness.report.build import REPORTER_VERSION, build_report
from harness.report.document import ReportDocument
from harness.report.evidence import Evidence
from harness.report.numbers import numbers, report_value
from harness.strict import build, load_file, read_plain
from trainer import contract

COMMITTED = ("plan.json", "prepared.json", "selection.json")
"""`keep` puts them beside the archive, where later studies read which cases were used."""


@dataclass(frozen=True)
class Compared:
    """`hashes` of the files that are the same, and a sentence that says what was compared."""

    hashes: dict[str, str]
    sentence: str


def compare_report(
    folder: Path, unpacked: Path, evidence: Evidence, closing: ClosingRecord
) -> Compared:
    """Raises BadInput for a kept file that the evidence does not give."""
    _same(folder / "closing.json", contract.canonical(closing.to_json()) + b"\n")
    _same(folder / "results.json", (unpacked / "results.json").read_bytes())
    _same(folder / "resources.json", contract.canonical(closing.resources.to_json()) + b"\n")
    for name in COMMITTED:
        if (folder / name).exists() and (unpacked / name).exists():
            _same(folder / name, (unpacked / name).read_bytes())
    kept = load_file(ReportDocument, folder / "report" / "report.json")
    if kept.reporter.version != REPORTER_VERSION:
        return _by_figure(folder, kept, evidence)
    files = build_report(evidence, raster=False).portable
    hashes = {name: _same(folder / "report" / name, data) for name, data in files.items()}
    _nothing_else(folder / "report", set(files))
    return Compared(
        hashes, f"Recomputed {len(hashes)} files from the evidence; every byte is the same."
    )


def _by_figure(folder: Path, kept: ReportDocument, evidence: Evidence) -> Compared:
    """Another version of the reporter gives other bytes; the figures must be the same."""
    again = build(ReportDocument, report_value(evidence, numbers(evidence)), where="report.json")
    theirs, ours = dict(_figures(kept)), dict(_figures(again))
    for place, value in theirs.items():
        if place in ours and ours[place] != value:
            raise BadInput(
                f"{place} is {value}, and the evidence gives {ours[place]}",
                where=str(folder / "report" / "report.json"),
            )
    common = theirs.keys() & ours.keys()
    return Compared(
        {},
        f"The report is of reporter {kept.reporter.version}, this is {REPORTER_VERSION}: "
        f"{len(common)} figures that both have were worked out again and are the same; "
        f"{len(theirs) - len(common)} are in the kept report only, and bytes were not compared.",
    )


def _figures(document: ReportDocument) -> Iterator[tuple[str, object]]:
    yield "the verdict", document.verdict.outcome
    for key, table in document.tables.items():
        for row in table.rows if not isinstance(table.rows, str) else ():
            for column, cell in zip(table.columns[1:], row.cells, strict=False):
                yield f"{key}, {row.header}, {column}", cell.value
    for arm, curve in document.losses.items():
        yield f"losses of {arm}", curve.points


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
