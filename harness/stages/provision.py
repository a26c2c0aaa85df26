"""provision: a fleet with both deadlines read back, after the worst case fits the ceiling."""

from __future__ import annotations

from harness.admission import Bound, admit
from harness.clock import parse_utc
from harness.errors import BadInput, Refused, command
from harness.fleet.protocol import Deadline, FleetSource
from harness.fleet.sources import Admitted, FleetTerms
from harness.receipts import CommitReceipt, Incomplete, ProvisionReceipt
from harness.stages.commit import require_commitment
from harness.stages.stamp import Stamp
from harness.strict import Model
from harness.study import Receipts, Study


class Armed(Model):
    """Outcome of arming."""

    armed: bool


def provision(study: Study, done: Receipts, stamp: Stamp) -> ProvisionReceipt:
    """Stand up or adopt the fleet. Raises Refused when a deadline cannot be proved armed."""
    if not study.development:
        require_commitment(study, done.of(CommitReceipt))
    count = _count(study)
    admitted = _admit(study)
    bound = _bound(study, admitted)
    fleet = study.fleets.open(
        FleetTerms(
            run_folder=study.folder,
            fleet_id=admitted.fleet,
            deadline_utc=admitted.deadline_utc,
            count=count,
        )
    )
    if study.clock.now() >= parse_utc(fleet.deadline_utc) and not study.development:
        return _too_late(study, stamp, fleet, bound)
    _arm(study, fleet)
    deadlines = fleet.deadlines()
    for deadline in deadlines:
        if deadline.applies and not deadline.armed:
            raise Refused(
                f"the {deadline.kind} deadline is not armed ({deadline.proof}), so no arm starts",
                where=fleet.id,
                next_command=study.again(),
            )
    known = tuple(f"{d.kind} deadline: {d.proof}" for d in deadlines if not d.applies)
    return ProvisionReceipt(
        **stamp.close(),
        notes=(*known, *fleet.notes()),
        fleet_kind=fleet.kind,
        fleet=fleet.id,
        hosts=tuple(host.facts() for host in fleet.hosts()),
        deadlines=deadlines,
        worst_case_usd=bound.total_usd,
        ceiling_usd=study.plan.budget.ceiling_usd,
    )


def _too_late(study: Study, stamp: Stamp, fleet: FleetSource, bound: Bound) -> ProvisionReceipt:
    """A run that stopped here and is taken up after its deadline, which never moves."""
    why = f"the deadline at {fleet.deadline_utc} passed before the hosts were looked at"
    inner = Deadline(kind="inner", applies=True, at_utc=fleet.deadline_utc, armed=False, proof=why)
    mine = fleet.hosts() if fleet.kind != "stack" else ()
    return ProvisionReceipt(
        **stamp.close(),
        fleet_kind=fleet.kind,
        fleet=fleet.id,
        hosts=tuple(host.facts() for host in mine),
        deadlines=(inner,),
        worst_case_usd=bound.total_usd,
        ceiling_usd=study.plan.budget.ceiling_usd,
        incomplete=Incomplete(because="deadline", why=why),
    )


def _count(study: Study) -> int:
    """Hosts that the fleet must have. Raises BadInput when the plan declares none."""
    if study.choice.hosts_file is not None:
        from harness.fleet.hosts_file import keep_hosts

        return keep_hosts(study.choice.hosts_file, study.folder, study.plan.workers)
    if study.fleet_kind == "stack":
        return study.plan.workers  # the fleet that is joined has its own number
    if study.plan.hosts.local is None:
        raise BadInput(
            "the plan declares no local hosts",
            where=f"{study.loaded.path}#/hosts",
            next_command=command("check", study.loaded.path),
        )
    return study.plan.hosts.local.count


def _admit(study: Study) -> Admitted:
    choice = study.choice

    def act() -> Admitted:
        if choice.kind == "stack":
            from harness.launch.joining import fleet_for

            found = fleet_for(study.loaded, study.runs, choice.fleet, study.clock).admitted
            return Admitted(fleet=found.fleet, deadline_utc=found.deadline_utc, kind="stack")
        return Admitted(
            fleet=f"{choice.kind}-{study.run}",
            deadline_utc=study.clock.after(study.plan.budget.deadline_s),
            kind=choice.kind,
            hosts_file=str(choice.hosts_file or ""),
        )

    return study.journal.effect("provision/admit", Admitted, intent={}, act=act, adopt=lambda: None)


def _bound(study: Study, admitted: Admitted) -> Bound:
    """The worst case that the run stands under; a stack's fleet learns here that it carries it."""
    if study.fleet_kind != "stack":
        return admit(study.plan, None, study.fleet_kind)
    from harness.launch.fleets import fleet_named
    from harness.launch.joining import join

    place = fleet_named(study.runs, admitted.fleet)
    return join(place, study.loaded, study.run, study.folder, study.clock)


def _arm(study: Study, fleet: FleetSource) -> None:
    def act() -> Armed:
        fleet.arm_deadlines()
        return Armed(armed=True)

    intent = {"fleet": fleet.id, "deadline_utc": fleet.deadline_utc}
    study.journal.effect("provision/arm", Armed, intent=intent, act=act, adopt=lambda: None)
