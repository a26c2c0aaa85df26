"""Tags by which everything of a fleet can be found without its journal (invariant 3)."""

from __future__ import annotations

from harness.fleet.admitted import AdmittedFleet

FLEET = "HarnessFleet"
SLOT = "HarnessSlot"
ATTEMPT = "HarnessAttempt"
STUDY = "Study"


def tags(admitted: AdmittedFleet, slot: int | None = None) -> dict[str, str]:
    """Tags of one thing of the fleet; `slot` for what belongs to one host.

    ATTEMPT is the launch of the plan and the placement that is tried, such as '1.0': a second
    placement of the same launch never looks like the first.
    """
    name = admitted.fleet if slot is None else f"{admitted.fleet}-host-{slot}"
    found = {
        "Name": name,
        STUDY: admitted.study,
        "SourceCommit": admitted.source_commit,
        "ExpiresAt": admitted.deadline_utc,
        "BudgetUSD": admitted.budget_usd,
        FLEET: admitted.fleet,
        ATTEMPT: f"{admitted.attempt}.{admitted.chosen}",
    }
    return found if slot is None else {**found, SLOT: str(slot)}
