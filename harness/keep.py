"""evidence/NAME from a finished run: archive, closing record, results, resources, report, sums."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from harness.closing import ClosingRecord
from harness.errors import BadInput
from harness.seal.extract import extract
from harness.strict import load_file
from harness.verify import ARCHIVE
from harness.verify.rebuilt import COMMITTED
from harness.verify.sums import write_sums
from harness.whole_folder import whole_folder

MAX_ARCHIVE_BYTES = 16 * 1024 * 1024
FILES = ("closing.json", "results.json", "resources.json")


def keep(run: Path, into: Path) -> Path:
    """Copy a run's small record. Raises BadInput when it is not finished or kept already."""
    closing = load_file(ClosingRecord, run / "closing.json", next_command="harness status")
    folder = into / closing.plan
    if folder.exists():
        raise BadInput("is there already; evidence is never replaced", where=str(folder))
    missing = [name for name in (*FILES, ARCHIVE) if not (run / name).is_file()]
    if missing or not (run / "report").is_dir():
        raise BadInput(
            f"the run is not whole: {(*missing, 'report')[0]} is missing",
            where=str(run),
            next_command="harness status",
        )
    archive = run / ARCHIVE
    if archive.stat().st_size > MAX_ARCHIVE_BYTES:
        raise BadInput(
            f"is over {MAX_ARCHIVE_BYTES} bytes; keep it in the store and commit its hash",
            where=str(archive),
        )
    with whole_folder(folder) as part:
        for name in (*FILES, ARCHIVE):
            shutil.copyfile(run / name, part / name)
        shutil.copytree(run / "report", part / "report")
        with tempfile.TemporaryDirectory(prefix="harness-keep-") as work:
            members = Path(work) / "members"
            extract(archive, members, expected_tar_sha256=closing.archive.sha256)
            for name in COMMITTED:
                if (members / name).is_file():
                    shutil.copyfile(members / name, part / name)
        write_sums(part)
    return folder
