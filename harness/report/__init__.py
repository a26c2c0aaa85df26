"""The report: a pure function of the evidence. Same evidence, same bytes (JSON, HTML, SVG)."""

from harness.report.build import REPORTER_VERSION, ReportFiles, build_report
from harness.report.evidence import Evidence
from harness.report.load import load_evidence

__all__ = ["REPORTER_VERSION", "Evidence", "ReportFiles", "build_report", "load_evidence"]
