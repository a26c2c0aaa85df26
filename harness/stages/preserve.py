"""preserve: every expected artifact read back whole by another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pydantic import ConfigDict

import harness
from harness.errors import Leaked, Waiting
from harness.evidence_folder import named_files
from harness.receipts import (
    PrepareReceipt,
    PreserveReceipt,
    Readback,
    SealReceipt,
    TrainReceipt,
)
from harness.stages.stamp import Stamp
from harness.store.protocol import Artifact
from harness.strict import Model, load
from harness.study import Receipts, Study
from trainer import contract

READBACK_S = 6 * 3600


class _Shown(Model):
    """What `harness.onhost.readback` prints, as far as it is used."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    pid: int
    objects: tuple[Readback, ...]


def preserve(study: Study, done: Receipts, stamp: Stamp) -> PreserveReceipt:
    """Read back the manifest that the receipts name. Raises Leaked when an object is not whole."""
    listing = study.work / "manifest.json"
    contract.write_json(listing, [each.to_json() for each in manifest(done)])
    shown = _read(study, listing)
    objects = shown.objects
    bad = [each for each in objects if not each.ok]
    if bad:
        raise Leaked(
            f"{len(bad)} of {len(objects)} preserved objects are not whole: {bad[0].name} is "
            f"{bad[0].fault} ({bad[0].sha256})",
            where=study.store.locate(bad[0].sha256),
            next_command=study.again(),
        )
    return PreserveReceipt(
        **stamp.close(),
        store=study.store.kind,
        reader_pid=shown.pid,
        reader="another process on this computer",
        objects=objects,
        bytes=sum(each.bytes for each in objects),
    )


def manifest(done: Receipts) -> tuple[Artifact, ...]:
    """What must be preserved: candidates, inputs, answers, losses, logs and the archive."""
    candidates = [
        Artifact(name=f"candidates/{arm.arm}/{each.name}", sha256=each.sha256, bytes=each.bytes)
        for arm in done.of(TrainReceipt).arms
        for each in arm.candidate.files
    ]
    prepared = done.of(PrepareReceipt).prepared_files
    return (*prepared, *candidates, *named_files(done), done.of(SealReceipt).envelope)


def _read(study: Study, listing: Path) -> _Shown:
    study.progress.note("reading everything back in another process")
    argv = [sys.executable, "-m", "harness.onhost.readback", "--store", study.store.address(),
            "--listing", str(listing)]  # fmt: skip
    top = str(Path(harness.__file__).parent.parent)
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        timeout=READBACK_S,
        env={**os.environ, "PYTHONPATH": top},
    )
    if done.returncode not in (0, 5) or not done.stdout:
        words = " ".join(done.stderr.split())[-300:]
        raise Waiting(f"the readback did not finish: {words}", where=study.store.kind)
    return load(_Shown, done.stdout.encode(), where="the readback's answer")
