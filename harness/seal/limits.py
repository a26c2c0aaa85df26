"""How large an archive may be. Sealing refuses what extraction would refuse."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caps:
    """Upper limits, the values themselves allowed."""

    members: int = 100_000
    member_bytes: int = 4 * 1024**3
    """Below what eleven octal digits of a tar header hold (8 GiB)."""
    total_bytes: int = 16 * 1024**3
    """Of the uncompressed tar."""
    index_bytes: int = 32 * 1024**2
    ratio: int = 400
    """Uncompressed bytes a compressed byte; gzip cannot pass 1032."""
    ratio_from_bytes: int = 64 * 1024**2
    """A smaller tar harms nobody, whatever its ratio."""


CAPS = Caps()
