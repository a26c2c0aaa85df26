"""The sealed archive: one deterministic file that binds every member, and its strict way back.

The archive's identity is the SHA-256 of the uncompressed tar. The gzip around it is an envelope
that proves its own bytes. `scan` looks for secrets before anything is sealed.
"""

from harness.seal.extract import extract
from harness.seal.index import Index, Member
from harness.seal.limits import CAPS, Caps
from harness.seal.secrets import Finding, scan
from harness.seal.tar import Sealed, seal

__all__ = ["CAPS", "Caps", "Finding", "Index", "Member", "Sealed", "extract", "scan", "seal"]
