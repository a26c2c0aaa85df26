"""report: the page and its numbers, from the archive and the closing record alone."""

from __future__ import annotations

import shutil

from harness.closing import ClosingRecord, Preservation, Release, SealedArchive
from harness.receipts import (
    PreserveReceipt,
    ReleaseReceipt,
    ReportReceipt,
    SealReceipt,
    TerminateReceipt,
)
from harness.report.build import build_report
from harness.report.load import load_evidence
from harness.results import Resources
from harness.seal.extract import extract
from harness.stages.stamp import Stamp
from harness.strict import load_file
from harness.study import Receipts, Study
from trainer import contract


def report(study: Study, done: Receipts, stamp: Stamp) -> ReportReceipt:
    """Write closing.json, unpack the stored archive and build the report from the two."""
    closing = _closing(study, done)
    closing_path = study.folder / "closing.json"
    contract.write_json(closing_path, closing.to_json())
    sealed = done.of(SealReceipt)
    archive = study.work / "sealed.tar.gz"
    study.store.fetch(sealed.envelope, archive)
    unpacked = study.work / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    extract(archive, unpacked, expected_tar_sha256=sealed.archive_sha256)
    files = build_report(load_evidence(unpacked, closing_path))
    folder = study.folder / "report"
    shutil.rmtree(folder, ignore_errors=True)
    files.write(folder)
    return ReportReceipt(
        **stamp.close(),
        report_json=study.store.put(folder / "report.json", name="report/report.json"),
        page=study.store.put(folder / "index.html", name="report/index.html"),
    )


def _closing(study: Study, done: Receipts) -> ClosingRecord:
    incomplete = done.incomplete
    sealed, preserved = done.of(SealReceipt), done.of(PreserveReceipt)
    released, ended = done.of(ReleaseReceipt), done.of(TerminateReceipt)
    return ClosingRecord(
        schema="harness/closing/1",
        plan=study.plan.name,
        run=study.run,
        archive=SealedArchive(
            sha256=sealed.archive_sha256,
            bytes=sealed.archive_bytes,
            locator=f"{study.store.kind}:{sealed.envelope.sha256}",
            envelope=sealed.envelope,
        ),
        preservation=Preservation(
            objects=len(preserved.objects),
            bytes=preserved.bytes,
            reader_pid=preserved.reader_pid,
            reader=preserved.reader,
            lost=preserved.lost,
            not_kept=preserved.not_kept,
            retention=preserved.retention.sentence() if preserved.retention else None,
        ),
        release=Release(basis=released.basis, why=released.why),
        ended=ended.ended,
        residue=ended.residue,
        incomplete=incomplete.why if incomplete else None,
        resources=load_file(Resources, study.folder / "resources.json"),
        stages={receipt.stage: receipt.seconds for receipt in (sealed, preserved, released, ended)},
    )
