"""Receipts of the stages that seal, preserve, end and report."""

from __future__ import annotations

from typing import Literal

from harness.plan.kinds import CountOrZero, Money, Sha256
from harness.receipts.base import Receipt
from harness.store.protocol import Artifact
from harness.strict import Model


class SealReceipt(Receipt):
    """The archive."""

    archive_sha256: Sha256
    """Of the uncompressed tar: the archive's identity."""
    archive_bytes: CountOrZero
    envelope: Artifact
    """The gzip file in the store."""
    index_sha256: Sha256
    members: CountOrZero


class Readback(Model):
    """One object read back by another process."""

    name: str
    sha256: Sha256
    bytes: CountOrZero
    version: str | None = None
    """The store's id of the bytes that were read; absent where it keeps none."""
    ok: bool
    fault: str | None = None


class Retention(Model):
    """When the stored bytes are removed again."""

    continues: bool
    """True: until somebody removes them."""
    why: str = ""
    """Why they continue."""
    ends_utc: str | None = None
    """When the bucket's rule removes them, as the bucket told it after it took the rule."""
    rule: str | None = None
    """The rule's id."""
    bytes: CountOrZero | None = None
    usd_a_month: Money | None = None
    """What these bytes cost a month at the store's price; absent: nothing bills them, or the price
    is not known."""

    def sentence(self) -> str:
        """For a reader of the report."""
        cost = (
            "" if self.usd_a_month is None else f"; {self.bytes} bytes, ${self.usd_a_month} a month"
        )
        if self.continues:
            return f"continues: {self.why}{cost}"
        return f"ends {self.ends_utc} by the bucket's rule {self.rule}{cost}"


class PreserveReceipt(Receipt):
    """Every expected artifact was read back whole, or is recorded as lost."""

    store: str
    reader_pid: CountOrZero
    reader: str
    """Where the reader ran."""
    objects: tuple[Readback, ...]
    bytes: CountOrZero
    lost: tuple[str, ...] = ()
    not_kept: tuple[str, ...] | None = None
    """Candidates whose weights were given up, with their parameter roots, a sentence each; absent:
    none were."""
    read_seconds: float | None = None
    """What reading alone took the reader."""
    sample: tuple[Readback, ...] = ()
    """What the operator's computer read again itself, when the reader was a host."""
    sample_rule: str | None = None
    retention: Retention | None = None
    """Absent in receipts from before it was recorded."""


class ReleaseReceipt(Receipt):
    """The gate: whether hosts may be ended."""

    released: bool
    basis: Literal["preserved", "abandoned"]
    why: str


class TerminateReceipt(Receipt):
    """Hosts are ended and nothing is left."""

    ended: tuple[str, ...]
    residue: tuple[str, ...]
    resources: Artifact
    """resources.json as stored."""


class ReportReceipt(Receipt):
    """The report was written from archive and closing record."""

    report_json: Artifact
    page: Artifact
