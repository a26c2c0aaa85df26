"""The same evidence gives the same bytes in any time zone, locale, umask and hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.report import ReportFiles
from trainer import contract

PROGRAM = """
import locale, os, sys
from pathlib import Path
os.umask(int(sys.argv[4], 8))
locale.setlocale(locale.LC_ALL, "")
from harness.report import build_report, load_evidence
from trainer import contract
evidence = load_evidence(Path(sys.argv[1]), Path(sys.argv[2]))
files = build_report(evidence, raster=sys.argv[3] == "all")
files.write(Path(sys.argv[5]))
for name in files.files:
    print(contract.hash_file(Path(sys.argv[5]) / name)[0], name)
assert sys.argv[3] == "all" or "matplotlib" not in sys.modules
"""


def _hashes(
    written: tuple[Path, Path], kind: str, umask: str = "022", **environment: str
) -> dict[str, str]:
    into = tempfile.mkdtemp(dir=written[0].parent)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, written), kind, umask, into],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split(" ", 1) for line in done.stdout.splitlines())
    return {name: digest for digest, name in rows}


def test_time_zone_locale_umask_and_hash_seed_change_nothing(
    written: tuple[Path, Path], report: ReportFiles, tmp_path: Path
) -> None:
    ours = {name: contract.sha256(data) for name, data in report.files.items()}
    (tmp_path / "matplotlibrc").write_text("font.size: 33\nlines.linewidth: 9\npdf.fonttype: 3\n")
    here = _hashes(
        written, "all", "077", TZ="Pacific/Chatham", LC_ALL="C", PYTHONHASHSEED="1",
        MATPLOTLIBRC=str(tmp_path), SOURCE_DATE_EPOCH="1",
    )  # fmt: skip
    there = _hashes(written, "all", "002", TZ="UTC", LC_ALL="C.UTF-8", PYTHONHASHSEED="77")
    assert here == there == ours
    assert len(ours) == 3 + 3 * 6


def test_without_raster_figures_matplotlib_is_not_needed(
    written: tuple[Path, Path], report: ReportFiles
) -> None:
    ours = {name: contract.sha256(data) for name, data in report.portable.items()}
    assert _hashes(written, "portable", PYTHONHASHSEED="5") == ours


def test_files_are_written_whole(report: ReportFiles, tmp_path: Path) -> None:
    report.write(tmp_path)
    found = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert found == dict(report.files)
