"""release: hosts may be ended once everything was read back whole, or preservation is given up.

Where only weights are given up, all else is read back first, and the receipt says both.
"""

from __future__ import annotations

from typing import Literal

from harness.errors import Refused
from harness.given_up import weights_given_up
from harness.receipts import PreserveReceipt, ReleaseReceipt
from harness.stages.stamp import Stamp
from harness.study import Receipts, Study


def release(study: Study, done: Receipts, stamp: Stamp) -> ReleaseReceipt:
    """Open the gate. Raises Refused when an object was not read back whole."""
    if study.abandon:
        return ReleaseReceipt(**stamp.close(), released=True, basis="abandoned", why=study.abandon)
    preserved = done.of(PreserveReceipt)
    bad = [each for each in preserved.objects if not each.ok]
    if bad:
        raise Refused(
            f"{len(bad)} object(s) were not read back whole, the first one {bad[0].name} "
            f"({bad[0].fault})",
            where=preserved.store,
            next_command=study.again("--abandon", "why"),
        )
    why = f"{len(preserved.objects)} objects, {preserved.bytes} bytes read back whole"
    if preserved.not_kept:
        given_up = weights_given_up(study.journal)
        why = (
            f"the weights of {len(preserved.not_kept)} candidate(s) are not kept: {given_up}; all "
            f"else was: {why}"
        )
    if preserved.lost:
        why += f"; {len(preserved.lost)} file(s) recorded as lost, with proof"
    basis: Literal["preserved", "abandoned"] = "abandoned" if preserved.not_kept else "preserved"
    return ReleaseReceipt(**stamp.close(), released=True, basis=basis, why=why)
