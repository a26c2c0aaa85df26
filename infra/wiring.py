"""What the program may ask and tell the outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.fleet.admitted import AdmittedFleet


@dataclass(frozen=True)
class Wiring:
    """What the program may ask and tell the outside; made by infra/__main__.py and by harness up.

    A callable refuses by raising HarnessError, whose sentence the engine prints.
    """

    admitted: AdmittedFleet
    require_admission: Callable[[], None]
    """Raises unless this fleet may be launched (or stands already). Not asked once preserved."""
    before_host: Callable[[int], None]
    """Slot: the intent, on disk before RunInstances. Raises when the slot had a host before."""
    after_host: Callable[[int, str], None]
    """Slot and instance id: the outcome."""
    on_failure: Callable[[str], None]
    """Why: ends what this placement launched, found by tag, and waits until it is terminated."""
    preserved: Callable[[], bool]
    """Whether every expected artifact is proved, checked against the live store."""
