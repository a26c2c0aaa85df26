"""resources.json of a fleet: what its journal observed, and what that costs at most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness import money
from harness.cost.lines import total_of
from harness.cost.observed import HostLife, Observed, VolumeLife
from harness.cost.resources import FleetFacts, looked, resources_of
from harness.errors import BadInput
from harness.fleet.admitted import AdmittedFleet
from harness.journal import Entry, read_entries
from harness.launch import record
from harness.launch.drive import known_disks
from harness.launch.fleets import FleetPlace
from harness.prices import load_prices
from harness.results import CostLine, GoneThing, Resources
from harness.strict import build
from trainer import contract


def resources(
    place: FleetPlace, at_utc: str, *, residue: tuple[str, ...] = (), final: bool = False
) -> Resources:
    """From the fleet's journal, its admission and the dated prices alone.

    Lives begin before a launch was asked for and end when AWS was seen to say so. What studies
    store is priced as admitted, because nobody counts it sooner.
    """
    admitted, entries = place.admitted, place.entries()
    hosts = host_lives(entries, admitted)
    facts = FleetFacts(
        fleet=admitted.fleet,
        studies=tuple(study.run for study in place.studies()),
        attempts=len(record.tries(entries)) or int(bool(hosts)),
        regions=(admitted.region,),
        allowance_usd=admitted.bound.allowance_usd if hosts else "0",
        ceiling_usd=admitted.bound.ceiling_usd,
        deadlines=deadlines(entries, admitted),
        removed=removed(entries),
        preservation_sha256=_preservation(place),
    )
    observed = Observed(
        region=admitted.region,
        at_utc=at_utc,
        deadline_utc=admitted.deadline_utc,
        hosts=hosts,
        volumes=volume_lives(entries, admitted, hosts, known_disks(place)),
        traffic_cap_bytes=_cap(admitted),
    )
    prices = load_prices(admitted.region)
    found = resources_of(facts, observed, prices, residue=residue, final=final)
    stored = stored_lines(admitted.bound.lines) if place.studies() else ()
    lines = (*found.lines, *stored, *joined_lines(entries))
    total = total_of(lines, facts.allowance_usd)
    return found.model_copy(update={"lines": lines, "total_bound_usd": total})


def write(
    place: FleetPlace, at_utc: str, *, residue: tuple[str, ...] = (), final: bool = False
) -> Resources:
    """Write resources.json of the fleet."""
    made = resources(place, at_utc, residue=residue, final=final)
    contract.write_json(place.folder / "resources.json", made.to_json())
    return made


def host_lives(entries: list[Entry], admitted: AdmittedFleet) -> tuple[HostLife, ...]:
    """Every host that was launched, also one that nobody could record before being killed."""
    ends = _ends(entries)
    begun = {e.key: e for e in entries if e.kind == "intent"}
    found: dict[str, HostLife] = {}
    for e in entries:
        if e.kind == "outcome" and e.key.startswith(f"{record.HOST}/"):
            each = str(e.data["instance_id"])
            found[each] = _life(admitted, begun[e.key], each, ends, recorded=True)
    answered = {e.key for e in entries if e.kind == "outcome"}
    for each, (asked, _) in ends.items():
        if each not in found:
            launches = record.launch_intents(entries)
            open_ones = [e for e in launches if e.key not in answered and e.seq < asked]
            intent = (open_ones or launches or [entries[0]])[-1]
            found[each] = _life(admitted, intent, each, ends, recorded=False)
    return tuple(found.values())


def _life(
    admitted: AdmittedFleet, intent: Entry, each: str, ends: dict[str, tuple[int, str | None]],
    *, recorded: bool,
) -> HostLife:  # fmt: skip
    index = int(intent.data.get("placement", admitted.chosen))
    placement = admitted.placements[index]
    slot = int(intent.data["slot"]) if "slot" in intent.data else None
    return HostLife(
        id=each,
        from_utc=intent.utc,
        until_utc=ends[each][1] if each in ends else None,
        slot=slot if recorded else None,
        attempt=f"{admitted.attempt}.{index}",
        type=placement.type,
        zone=placement.zones[slot or 0],
    )


def _ends(entries: list[Entry]) -> dict[str, tuple[int, str | None]]:
    """Of each host whose end was asked for: where in the journal, and when it was seen ended."""
    found: dict[str, tuple[int, str | None]] = {}
    for e in entries:
        if not e.key.startswith(f"{record.END}/"):
            continue
        if e.kind == "intent":
            for each in e.data["hosts"]:
                found.setdefault(str(each), (e.seq, None))
        elif e.kind == "outcome":
            for host in e.data["hosts"]:
                begun = found.get(str(host["id"]), (e.seq, None))[0]
                found[str(host["id"])] = (begun, str(host["ended_utc"]))
    return found


def volume_lives(
    entries: list[Entry], admitted: AdmittedFleet, hosts: tuple[HostLife, ...],
    disks: Mapping[str, tuple[str, ...]],
) -> tuple[VolumeLife, ...]:  # fmt: skip
    """Root volumes: those that were followed, from the first of the fleet's hosts, at most; and
    those in `disks` (ids by host, as seen while it lived) that nobody has followed yet."""
    ends = [e for e in entries if e.key.startswith(f"{record.END}/")]
    gone = {str(v["id"]): str(v["gone_utc"])
            for e in ends if e.kind == "outcome" for v in e.data["volumes"]}  # fmt: skip
    asked = [str(v) for e in ends if e.kind == "intent" for v in e.data["volumes"]]
    first = min((host.from_utc for host in hosts), default=entries[0].utc)
    followed = [(each, first, gone.get(each)) for each in dict.fromkeys(asked)]
    others = [
        (each, host.from_utc, _missed(entries, each, host.until_utc))
        for host in hosts
        for each in disks.get(host.id, ())
        if each not in asked
    ]
    return tuple(
        VolumeLife(
            id=each,
            from_utc=begun,
            until_utc=until,
            gib=admitted.volume.gib,
            iops=admitted.volume.iops,
            throughput_mbps=admitted.volume.throughput_mbps,
        )
        for each, begun, until in (*followed, *others)
    )


def _missed(entries: list[Entry], volume: str, ended_utc: str | None) -> str | None:
    """When a search first missed the volume of a host that had ended; null while none has."""
    if ended_utc is None:
        return None
    looks = ((utc, look.shown) for utc, look in record.looks(entries) if utc >= ended_utc)
    return next((utc for utc, shown in looks if ("volume", volume) not in shown), None)


def removed(entries: list[Entry]) -> tuple[GoneThing, ...]:
    """What the searches in the journal showed besides hosts and volumes, and when it was gone."""
    found: tuple[GoneThing, ...] = ()
    for utc, look in record.looks(entries):
        found = looked(found, look.shown, utc)
    return found


def deadlines(entries: list[Entry], admitted: AdmittedFleet) -> tuple[str, ...]:
    """A sentence for each proof of the outer deadline."""
    return tuple(
        f"outer: schedules that end {', '.join(map(str, e.data['hosts']))} at "
        f"{admitted.deadline_utc}, read back at {e.utc}"
        for e in entries
        if e.kind == "outcome" and e.key.startswith(f"{record.OUTER}/")
    )


def stored_lines(lines: tuple[CostLine, ...]) -> tuple[CostLine, ...]:
    """The admission's lines for what a study stores and reads back."""
    return tuple(line for line in lines if line.what.startswith(("S3 ", "readback ")))


def joined_lines(entries: list[Entry]) -> tuple[CostLine, ...]:
    """What each study that joined later stores and reads back, as it was admitted."""
    return tuple(
        build(CostLine, {**line, "what": f"{line['what']}, run {e.data['run']}"}, where=e.key)
        for e in entries
        if e.kind == "note" and e.key == record.JOINED_BOUND
        for line in e.data.get("lines", [])
    )


def _cap(admitted: AdmittedFleet) -> int:
    if admitted.traffic_gb_per_host is None:
        raise BadInput("the admission names no traffic cap", where=admitted.fleet)
    return int(money.bytes_up(admitted.traffic_gb_per_host))


def _preservation(place: FleetPlace) -> str | None:
    """Hash of the newest study's preserve receipt."""
    found = None
    for study in place.studies():
        entries, _ = read_entries(Path(study.folder) / "journal.jsonl")
        for entry in entries:
            if entry.kind == "receipt" and entry.key == "preserve":
                found = contract.hash_of(entry.data)
    return found
