"""Whether the gate is open: what every study of a fleet proved, checked against the live store."""

from __future__ import annotations

from pathlib import Path

from harness.errors import HarnessError, Refused, command
from harness.journal import read_entries
from harness.launch.fleets import FleetPlace, Joined
from harness.launch.record import Released, recorded_release
from harness.plan import load_plan
from harness.receipts import PreserveReceipt, ReleaseReceipt
from harness.store.choose import kept_store
from harness.strict import build


def released(place: FleetPlace) -> Released | None:
    """The release that holds now, or null while the gate is armed.

    A recorded 'abandoned' or 'nothing to preserve' holds until something is launched again. Else
    every study that joined must have been released, with every preserved object in the store.
    """
    recorded = recorded_release(place.entries())
    if recorded is not None and recorded.basis != "preserved":
        return recorded
    studies = place.studies()
    if not studies:
        return None
    reasons = [why_not(study) for study in studies]
    if any(reasons):
        return None
    return Released(basis="preserved", why=f"{len(studies)} stud(ies) preserved and read back")


def waiting_for(place: FleetPlace) -> tuple[str, ...]:
    """Why the gate is armed, a sentence for each study."""
    return tuple(
        f"the study {study.run}: {why}" for study in place.studies() if (why := why_not(study))
    )


def unfinished(place: FleetPlace) -> str:
    """The command that goes on with the first study that keeps the gate armed; '' for none."""
    for study in place.studies():
        if why_not(study):
            own = study.plan_hash == place.admitted.plan_hash
            return command("run", study.plan, *(() if own else ("--fleet", place.admitted.fleet)))
    return ""


def why_not(study: Joined) -> str:
    """Why a study does not let its hosts go; '' when it does."""
    path = Path(study.folder) / "journal.jsonl"
    try:
        entries, _ = read_entries(path)
        found = {e.key: e.data for e in entries if e.kind == "receipt"}
        if "release" not in found:
            return "its evidence is not preserved"
        receipt = build(ReleaseReceipt, found["release"], where=str(path))
        if receipt.basis == "abandoned" and "preserve" not in found:
            return ""  # where only weights were given up, all else must be there
        return _missing(study, build(PreserveReceipt, found["preserve"], where=str(path)))
    except (HarnessError, OSError, KeyError) as error:
        return f"its record cannot be read ({error})"


def _missing(study: Joined, preserved: PreserveReceipt) -> str:
    bad = [each for each in preserved.objects if not each.ok]
    if bad:
        return f"{bad[0].name} was not read back whole"
    folder = Path(study.folder)
    store = kept_store(load_plan(Path(study.plan)), folder.parents[1], folder)
    for each in preserved.objects:
        if not store.has(each.sha256):
            return f"{each.name} is no longer in the store ({store.locate(each.sha256)})"
    return ""


def require_released(place: FleetPlace, next_command: str) -> Released:
    """The release, or Refused: hosts end only after their evidence is safe."""
    found = released(place)
    if found is not None:
        return found
    waiting = waiting_for(place)
    raise Refused(
        waiting[0] if waiting else "no study of this fleet has run",
        where=place.admitted.fleet,
        next_command=next_command,
    )
