"""Who signs and who stamps, as the user said it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import BadInput

if TYPE_CHECKING:  # cryptography is loaded only where it is used
    from harness.attest.signing import Signer
    from harness.attest.stamping import Authority


@dataclass(frozen=True)
class Attesting:
    """The key that signs and the authority that is asked; None: neither."""

    signer: Signer | None = None
    authority: Authority | None = None


NOT_ATTESTED = Attesting()


def chosen(sign: Path | None, timestamp: str, certificates: Path | None) -> Attesting:
    """From the words on the command line. Raises BadInput."""
    if sign is None and not timestamp:
        if certificates is not None:
            raise BadInput("needs --timestamp URL", where="--timestamp-ca")
        return NOT_ATTESTED
    from harness.attest.signing import load_signer
    from harness.attest.stamping import load_authority

    return Attesting(
        load_signer(sign) if sign is not None else None,
        load_authority(timestamp, certificates) if timestamp else None,
    )
