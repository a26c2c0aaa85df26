"""terminate: hosts are ended, nothing is left, and resources.json says what it cost at most."""

from __future__ import annotations

from harness.admission import admit
from harness.clock import parse_utc
from harness.errors import Leaked, Refused
from harness.receipts import (
    PreserveReceipt,
    ProvisionReceipt,
    ReleaseReceipt,
    TerminateReceipt,
)
from harness.results import HostCost, Resources
from harness.stages.stamp import Stamp
from harness.strict import Model
from harness.study import Receipts, Study
from trainer import contract

_TYPES = {"local": "this computer", "hosts-file": "the user's own machine"}


class Ended(Model):
    """Outcome of ending the fleet."""

    sentences: tuple[str, ...]
    at_utc: str


def terminate(study: Study, done: Receipts, stamp: Stamp) -> TerminateReceipt:
    """End the fleet behind the gate. Raises Leaked when something is left."""
    if not done.of(ReleaseReceipt).released:
        raise Refused("the preservation gate is closed", where=study.run)
    provisioned = done.of(ProvisionReceipt)
    fleet = study.fleet(provisioned)

    def act() -> Ended:
        return Ended(sentences=fleet.end(), at_utc=study.clock.utc())

    ended = study.journal.effect(
        "terminate/end", Ended, intent={"fleet": fleet.id}, act=act, adopt=lambda: None
    )
    residue = fleet.residue()
    if residue:
        raise Leaked(
            f"{len(residue)} thing(s) of the fleet are still there: {residue[0]}",
            where=fleet.id,
            next_command=study.again(),
        )
    resources = _resources(study, done, ended)
    path = study.folder / "resources.json"
    contract.write_json(path, resources.to_json())
    return TerminateReceipt(
        **stamp.close(),
        ended=ended.sentences,
        residue=residue,
        resources=study.store.put(path, name="resources.json"),
    )


def _resources(study: Study, done: Receipts, ended: Ended) -> Resources:
    provisioned = done.of(ProvisionReceipt)
    if study.fleet_kind == "stack":
        from harness.launch.closing import resources
        from harness.launch.fleets import fleet_named

        place = fleet_named(study.runs, provisioned.fleet)
        return resources(place, study.clock.utc())
    bound = admit(study.plan, None, study.fleet_kind)
    preserved = [each for each in done.by_stage.values() if isinstance(each, PreserveReceipt)]
    return Resources(
        schema="harness/resources/1",
        fleet=provisioned.fleet,
        fleet_kind=provisioned.fleet_kind,
        studies=(study.run,),
        attempts=1,
        hosts=tuple(
            HostCost(
                host=host.name,
                type=_TYPES.get(provisioned.fleet_kind, provisioned.fleet_kind),
                launched_utc=provisioned.finished_utc,
                ended_utc=ended.at_utc,
                seconds=_between(provisioned.finished_utc, ended.at_utc),
            )
            for host in provisioned.hosts
        ),
        lines=bound.lines,
        allowance_usd=bound.allowance_usd,
        total_bound_usd=bound.total_usd,
        ceiling_usd=bound.ceiling_usd,
        deadlines=tuple(f"{each.kind}: {each.proof}" for each in provisioned.deadlines),
        residue=(),
        preservation_sha256=contract.hash_of(preserved[0].to_json()) if preserved else None,
        state="final",
        note="Nothing is billed for these hosts. This is a bound, not an invoice.",
    )


def _between(earlier_utc: str, later_utc: str) -> float:
    return (parse_utc(later_utc) - parse_utc(earlier_utc)).total_seconds()
