"""Recompute a study from its evidence, offline: what it proves and what it cannot."""

from harness.verify.attested import Trust
from harness.verify.whole import ARCHIVE, Verified, verify

__all__ = ["ARCHIVE", "Trust", "Verified", "verify"]
