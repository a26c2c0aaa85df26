"""`harness down`: hosts ended behind the gate, the stack removed, nothing left, the cost final."""

from __future__ import annotations

from harness.cloud.left import Known, Left
from harness.cloud.remove import remove
from harness.cloud.residue import residue
from harness.errors import Leaked, command
from harness.launch import closing, ending, preserved, record
from harness.launch.drive import Drive
from harness.launch.record import Released
from harness.results import Resources


def down(drive: Drive, *, abandon: str = "") -> Resources:
    """Take the fleet down. Raises Refused before preservation, Waiting and Leaked after it.

    Everything is repeated harmlessly: the same command goes on where it stopped.
    """
    if drive.place.final:
        found = drive.place.resources()
        assert found is not None
        _close(drive, found)
        return found
    released = _release(drive, abandon)
    record.write_release(drive.journal, released)
    drive.say(f"the gate is open: {released.basis}")
    drive.engine.settle()
    ending.end_all(drive.aws, drive.admitted, drive.journal, known=drive.engine.hosts())
    record.write_look(drive.journal, residue(drive.aws, drive.admitted.fleet))
    closing.write(drive.place, drive.clock.utc())
    drive.say("hosts are terminated and their volumes gone; removing the stack")
    drive.destroy()
    _sweep(drive)
    resources = closing.write(drive.place, drive.clock.utc(), final=True)
    _close(drive, resources)
    return resources


def _close(drive: Drive, resources: Resources) -> None:
    """The journal's last word, once: resources.json is final before it."""
    if drive.journal.find("receipt", "final") is None:
        drive.journal.append("receipt", "final", {"total_bound_usd": resources.total_bound_usd})


def _release(drive: Drive, abandon: str) -> Released:
    """Why hosts may end. A fleet on which no study ever ran has nothing to preserve."""
    found = preserved.released(drive.place)
    if found is not None:
        return found
    if abandon:
        return Released(basis="abandoned", why=abandon)
    if not drive.place.studies():
        return Released(basis="nothing to preserve", why="no study has run on this fleet")
    go_on = preserved.unfinished(drive.place) or command("run", drive.admitted.plan_path)
    return preserved.require_released(drive.place, go_on)


def _look(drive: Drive, known: Known) -> tuple[Left, ...]:
    left = residue(drive.aws, drive.admitted.fleet, known=known)
    record.write_look(drive.journal, left)
    return left


def _sweep(drive: Drive) -> None:
    """What the engine does not know of, such as what a killed one was making, goes by tag."""
    known = Known(instances=record.launched_ids(drive.journal.entries))
    left = _look(drive, known)
    if not left:
        return
    drive.say(f"{len(left)} thing(s) the engine did not know are removed: {left[0].sentence()}")
    remove(drive.aws, left)
    left = _look(drive, known)
    if left:
        names = tuple(each.sentence() for each in left)
        closing.write(drive.place, drive.clock.utc(), residue=names)
        raise Leaked(
            f"{len(left)} thing(s) of the fleet are still there: {names[0]}",
            where=drive.admitted.fleet,
            next_command=command("down", drive.admitted.plan_path),
        )
