"""One synthetic study for all tests of the report."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.report import Evidence, ReportFiles, build_report, load_evidence
from tests.unit.report.make_evidence import write_evidence


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(archive folder, closing record); not to be changed."""
    folder = tmp_path_factory.mktemp("study") / "archive"
    closing = write_evidence(folder)
    assert closing is not None
    return folder, closing


@pytest.fixture(scope="session")
def evidence(written: tuple[Path, Path]) -> Evidence:
    """The study as a value."""
    return load_evidence(*written)


@pytest.fixture(scope="session")
def report(evidence: Evidence) -> ReportFiles:
    """Its report."""
    return build_report(evidence)


@pytest.fixture
def copy(written: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy of the archive folder that a test may change."""
    return Path(shutil.copytree(written[0], tmp_path / "archive"))
