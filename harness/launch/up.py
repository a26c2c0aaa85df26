"""`harness up`: the admitted placements one after another, until one stands.

A lack of capacity goes on to the next placement; a host that fails AWS's status checks is launched
again in the same one, while the plan allows launches; anything else stops. Every try is in the
fleet's journal with what was launched and when. A try that was killed is settled first: what it
launched stays if the engine knows all of it, else it is ended by tag.
"""

from __future__ import annotations

from harness.errors import HarnessError, Leaked, Refused, command
from harness.fleet.outputs import StackOutputs
from harness.launch import closing, ending, health, outer, record
from harness.launch.drive import Drive, note_disks
from harness.launch.engine import EngineFailed
from harness.launch.record import Tried
from harness.launch.refusals import essence, kind_of

APPEAR_S = 120.0
"""A host that was asked for this long ago is shown by EC2, if there is one (EC2 developer guide,
'Eventual consistency')."""


def up(drive: Drive, *, launches: int) -> StackOutputs:
    """Stand the fleet up, or find it standing, and write what it costs at most from now on.

    `launches` may have hosts at all.

    Raises Refused when no placement has capacity, when something else is wrong, or when the
    launches are used up; nothing that costs money is left then.
    """
    outputs = _stood(drive, launches)
    note_disks(drive.place, ending.living(ending.seen(drive.aws, drive.admitted)))
    closing.write(drive.place, drive.clock.utc())
    return outputs


def _stood(drive: Drive, launches: int) -> StackOutputs:
    from harness.fleet.wiring import require_launchable, require_time

    require_launchable(drive.place, drive.clock)
    drive.engine.settle()
    left = record.open_try(drive.journal.entries)
    if left is not None:
        drive.say("an earlier `harness up` was stopped; looking at what it left")
        drive.say(f"it is settled: {_finish(drive, left, _settled(drive, left)).result}")
    standing = _complete(drive)
    if standing is not None:
        return _proved(drive, standing)
    while True:
        _end(drive)  # before a refusal: what costs money is gone then
        require_time(drive.place, drive.clock)
        drive.destroy()
        placement = _next(drive)
        _require_launches(drive, launches)
        drive.change(chosen=placement)
        tried = _try(drive, placement)
        if tried.result == "complete":
            break
        drive.say(f"placement {placement}: {tried.result} ({tried.why})")
        if tried.result not in ("no capacity", "unhealthy"):
            raise Refused(
                f"the fleet could not be launched: {tried.why}; {_left(tried)}",
                where=drive.admitted.fleet,
                next_command=command("up", drive.admitted.plan_path),
            )
    outputs = drive.engine.outputs()
    assert outputs is not None  # a complete try has outputs
    return _proved(drive, outputs)


def _left(tried: Tried) -> str:
    if not tried.launched:
        return "no host was launched, so nothing costs money"
    return f"what was launched is terminated ({', '.join(tried.launched)})"


def _try(drive: Drive, placement: int) -> Tried:
    key = record.next_key(record.UP, drive.admitted, drive.journal.entries, str(placement))
    chosen = drive.admitted.placement
    drive.journal.append(
        "intent", key, {"type": chosen.type, "zones": list(chosen.zones), "placement": placement}
    )
    began = drive.clock.utc()
    drive.say(f"launching {drive.admitted.count} x {chosen.type} in {', '.join(chosen.zones)}")
    try:
        outputs = drive.engine.up(drive.say)
    except EngineFailed as failed:
        return _finish(drive, key, _failed(drive, placement, began, str(failed)))
    return _finish(drive, key, _checked(drive, placement, began, outputs))


def _checked(drive: Drive, placement: int, began: str, outputs: StackOutputs) -> Tried:
    """Hosts that all run are complete once AWS's checks say so, whoever launched them."""
    why = health.fault(drive.aws, outputs, drive.say)
    if not why:
        return _outcome(drive, placement, began, "complete", "")
    launched = tuple(host.instance_id for host in outputs.hosts)
    give_up(drive, why)
    return _outcome(drive, placement, began, "unhealthy", why, launched)


def _failed(drive: Drive, placement: int, began: str, said: str) -> Tried:
    kind = kind_of(said)
    result: record.Ending = (
        "no capacity" if kind == "capacity" else "configuration" if kind == "configuration"
        else "failed"
    )  # fmt: skip
    launched = _end(drive)
    return _outcome(drive, placement, began, result, essence(said), launched)


def _settled(drive: Drive, key: str) -> Tried:
    """What became of a try whose process is gone."""
    placement = record.placement_of(key)
    began = next(e.utc for e in drive.journal.entries if e.kind == "intent" and e.key == key)
    _wait_until_shown(drive)
    outputs = drive.standing()
    if outputs is not None:
        return _checked(drive, placement, began, outputs)
    why = "the process that launched was stopped before the fleet was complete"
    return _outcome(drive, placement, began, "interrupted", why, _end(drive))


def _wait_until_shown(drive: Drive) -> None:
    """'Not shown' is not 'absent': wait until a host that was asked for would be shown."""
    outcomes = {e.key for e in drive.journal.entries if e.kind == "outcome"}
    asked = [e for e in record.launch_intents(drive.journal.entries) if e.key not in outcomes]
    if not asked:
        return
    from harness.clock import parse_utc

    newest = asked[-1]
    slot = str(newest.data["slot"])
    while (drive.clock.now() - parse_utc(newest.utc)).total_seconds() < APPEAR_S:
        alive = ending.living(ending.seen(drive.aws, drive.admitted))
        if any(host.slot == slot for host in alive):
            return
        drive.clock.sleep(2)


def _outcome(
    drive: Drive, placement: int, began: str, result: record.Ending, why: str,
    launched: tuple[str, ...] | None = None,
) -> Tried:  # fmt: skip
    if launched is None:
        launched = tuple(h.id for h in ending.living(ending.seen(drive.aws, drive.admitted)))
    return Tried(
        placement=placement, result=result, why=why, launched=launched,
        began_utc=began, ended_utc=drive.clock.utc(),
    )  # fmt: skip


def _finish(drive: Drive, key: str, tried: Tried) -> Tried:
    drive.journal.append("outcome", key, tried.to_json())
    return tried


def _end(drive: Drive) -> tuple[str, ...]:
    """End what lives of the fleet, by tag; ids of all that were launched since the last try."""
    before = {each for tried in record.tries(drive.journal.entries) for each in tried.launched}
    shown = {host.id for host in ending.seen(drive.aws, drive.admitted)}
    known = {*drive.engine.hosts(), *record.launched_ids(drive.journal.entries)}
    ending.end_all(drive.aws, drive.admitted, drive.journal, known=drive.engine.hosts())
    return tuple(sorted((shown | known) - before))


def _complete(drive: Drive) -> StackOutputs | None:
    tries = record.tries(drive.journal.entries)
    done = tries and tries[-1].result == "complete"
    if record.recorded_release(drive.journal.entries) is not None:
        return None
    return drive.standing() if done or not tries else None


def _next(drive: Drive) -> int:
    """The placement to try: the first one that had no lack of capacity in this launch."""
    full = {t.placement for t in record.tries(drive.journal.entries) if t.result == "no capacity"}
    for placement in range(len(drive.admitted.placements)):
        if placement not in full:
            return placement
    raise Refused(
        f"none of the {len(drive.admitted.placements)} placements has capacity now; nothing that "
        "costs money is left",
        where=drive.admitted.fleet,
        next_command=f"{command('down', drive.admitted.plan_path)}, then harness admit again later",
    )


def _require_launches(drive: Drive, launches: int) -> None:
    """A try that launched a host counts, because a host bills at least a minute."""
    billed = sum(1 for tried in record.tries(drive.journal.entries) if tried.launched)
    used = billed + drive.admitted.attempt - 1
    if used >= launches:
        raise Refused(
            f"{used} of the {launches} launches that the plan allows are used",
            where=drive.admitted.fleet,
            next_command=command("down", drive.admitted.plan_path),
        )


def _proved(drive: Drive, outputs: StackOutputs) -> StackOutputs:
    """Both deadlines stand or the hosts end: here the outer one, read back."""
    proofs = [
        e for e in drive.journal.entries if e.kind == "outcome" and e.key.startswith("outer/")
    ]
    ids = [host.instance_id for host in outputs.hosts]
    if proofs and proofs[-1].data.get("hosts") == ids:
        return outputs
    key = record.next_key(record.OUTER, drive.admitted, drive.journal.entries, "proof")
    drive.journal.append("intent", key, {"hosts": ids})
    try:
        left = outer.proved(drive.aws, outputs)
    except HarnessError as error:
        left = {host.slot: error.what for host in outputs.hosts}
    if not left:
        drive.journal.append("outcome", key, {"hosts": ids, "deadline_utc": outputs.deadline_utc})
        return outputs
    slot, why = next(iter(left.items()))
    give_up(drive, f"the outer deadline of slot {slot} is not proved: {why}")
    raise Leaked(
        f"the outer deadline of slot {slot} is not proved within 5 minutes ({why}), so the hosts "
        "are terminated",
        where=drive.admitted.fleet,
        next_command=command("up", drive.admitted.plan_path),
    )


def give_up(drive: Drive, why: str) -> None:
    """Nothing has run, so nothing is to be preserved: open the gate and end what stands."""
    record.write_release(drive.journal, record.Released(basis="nothing to preserve", why=why))
    _end(drive)
    drive.destroy()
