"""`build_report`: evidence in, files out. Nothing else decides what a report holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.report import bars
from harness.report.drawing import Drawing
from harness.report.evidence import Evidence
from harness.report.figures import drawings, standalone
from harness.report.numbers import REPORTER_VERSION, numbers, report_value
from harness.report.page import answers_page, index_page
from harness.report.serving import phases_of, saturation
from trainer import contract

__all__ = ["REPORTER_VERSION", "ReportFiles", "build_report"]


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """A report's files: bytes by path relative to the report folder."""

    files: Mapping[str, bytes]

    @property
    def portable(self) -> dict[str, bytes]:
        """JSON, HTML and SVG: the same bytes on any machine. PNG and PDF only where pinned."""
        return {n: data for n, data in self.files.items() if not n.endswith((".png", ".pdf"))}

    def write(self, folder: Path) -> None:
        """Write every file, each one whole or not at all."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            contract.write_atomic(path, data)


def build_report(evidence: Evidence, *, raster: bool = True) -> ReportFiles:
    """Make index.html, answers.html, report.json and the figures.

    `raster=False` leaves out the PNG and PDF figures, and matplotlib is then not imported.
    """
    found, figures = numbers(evidence), drawings(evidence)
    figures |= {
        name: drawing
        for name, drawing in (
            ("retention", bars.retention(evidence)),
            ("bytes", bars.sent_bytes(evidence)),
            ("cost", bars.cost(evidence)),
            ("saturation", saturation(phases_of(evidence))),
        )
        if drawing is not None
    }
    files = {
        "report.json": contract.canonical(report_value(evidence, found)) + b"\n",
        "index.html": index_page(evidence, found, figures),
        "answers.html": answers_page(evidence),
    }
    for name, drawing in figures.items():
        files[f"figures/{name}.svg"] = standalone(drawing)
        if raster:
            files |= _rasters(name, drawing)
    return ReportFiles(dict(sorted(files.items())))


def _rasters(name: str, drawing: Drawing) -> dict[str, bytes]:
    from harness.report.raster import pdf, png  # matplotlib is slow to import, and optional

    return {f"figures/{name}.png": png(drawing), f"figures/{name}.pdf": pdf(drawing)}
