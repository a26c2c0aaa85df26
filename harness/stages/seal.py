"""seal: the evidence as one deterministic archive in the store."""

from __future__ import annotations

import os

from harness.errors import Refused
from harness.evidence_folder import materialise, write_receipts
from harness.receipts import DecideReceipt, SealReceipt
from harness.seal.secrets import scan
from harness.seal.tar import seal as seal_folder
from harness.stages.stamp import Stamp
from harness.study import Receipts, Study

SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSPHRASE", "CREDENTIAL")
"""Environment variables whose values must not be in the evidence."""


def seal(study: Study, done: Receipts, stamp: Stamp) -> SealReceipt:
    """Build the archive. Raises Refused when a secret is found in it (value never shown)."""
    folder = materialise(study, done)
    study.store.fetch(done.of(DecideReceipt).results, folder / "results.json")
    write_receipts(folder, done)
    findings = scan(folder, _known_secrets() | _hook(study))
    if findings:
        first = findings[0]
        raise Refused(
            f"the evidence holds what looks like a secret ({first.detector}) at byte "
            f"{first.offset}, and nothing is preserved with a secret in it",
            where=first.member,
            next_command="rotate that secret; then remove its source and run again",
        )
    path = study.folder / "evidence.tar.gz"
    sealed = seal_folder(folder, path)
    return SealReceipt(
        **stamp.close(),
        archive_sha256=sealed.tar_sha256,
        archive_bytes=sealed.tar_bytes,
        envelope=study.store.put(path, name="evidence.tar.gz"),
        index_sha256=sealed.index_sha256,
        members=sealed.members,
    )


def _hook(study: Study) -> dict[str, bytes]:
    """A web hook's address lets whoever has it post there."""
    target = study.notices.target
    return {"notice": target.encode()} if target.startswith(("http://", "https://")) else {}


def _known_secrets() -> dict[str, bytes]:
    """Values of this process's environment that are named like secrets, not like their files."""
    return {
        name: os.fsencode(value.strip())
        for name, value in os.environ.items()
        if len(value.strip()) >= 8
        and any(word in name.upper() for word in SECRET_NAMES)
        and not name.upper().endswith(("FILE", "PATH", "DIR"))
    }
