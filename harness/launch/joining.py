"""A study joins a living fleet: the one of its plan, or another that has room for it."""

from __future__ import annotations

from pathlib import Path

from harness import money
from harness.admission import Bound, worst_case
from harness.clock import Clock, parse_utc
from harness.cloud.clients import Aws
from harness.errors import Refused, Waiting, command
from harness.launch import record
from harness.launch.drive import standing_outputs
from harness.launch.fleets import FleetPlace, Joined, driving, fleet_named, fleet_of_plan
from harness.plan import LoadedPlan
from harness.plan.times import known_seconds, predict
from harness.prices import load_prices


def fleet_for(loaded: LoadedPlan, runs: Path, fleet: str, clock: Clock) -> FleetPlace:
    """The living fleet that a run of this plan may use. Raises Waiting with the next command."""
    place = fleet_named(runs, fleet) if fleet else fleet_of_plan(runs, loaded.hash)
    if place is None:
        raise Waiting(
            "there is no live fleet for this plan",
            where=str(loaded.path),
            next_command=f"{command('up', loaded.path)} (or add --up)",
        )
    if place.final or place.expired(clock):
        ended = "is ended" if place.final else f"is past its deadline {place.admitted.deadline_utc}"
        raise Waiting(
            f"the fleet {ended}",
            where=place.admitted.fleet,
            next_command=command("admit" if place.final else "down", loaded.path),
        )
    standing_outputs(place, Aws(place.admitted.region, clock=clock), clock)
    return place


def join(place: FleetPlace, loaded: LoadedPlan, run: str, folder: Path, clock: Clock) -> Bound:
    """Record in the fleet's journal that this run uses it; its gate then waits for this run too.

    Returns the bound that the run stands under: the fleet's, or for a later plan what it adds.
    Raises Refused when the plan does not fit what is left of ceiling and deadline.
    """
    own = place.admitted.plan_hash == loaded.hash
    bound = place.admitted.bound if own else _later(place, loaded, run, clock)
    if run not in {study.run for study in place.studies()}:
        joined = Joined(run=run, plan=str(loaded.path), plan_hash=loaded.hash, folder=str(folder))
        with driving(place, clock) as journal:
            if not own:
                lines = [line.to_json() for line in bound.lines]
                told = {"run": run, "bound_usd": bound.total_usd, "lines": lines}
                journal.note(record.JOINED_BOUND, told)
            journal.note("study", joined.to_json())
    return bound


def _later(place: FleetPlace, loaded: LoadedPlan, run: str, clock: Clock) -> Bound:
    admitted, plan = place.admitted, loaded.plan
    hosts = plan.hosts.aws
    if (
        hosts is None
        or hosts.region != admitted.region
        or admitted.placement.type not in hosts.types
    ):
        raise _no(place, f"the plan does not allow {admitted.placement.type} in {admitted.region}")
    if plan.workers > admitted.count:
        raise _no(place, f"the plan needs {plan.workers} hosts, the fleet has {admitted.count}")
    left_s = (parse_utc(admitted.deadline_utc) - clock.now()).total_seconds()
    needs_s = known_seconds(predict(plan, "stack", None))
    if needs_s > left_s:
        raise _no(
            place,
            f"the plan needs at least {needs_s / 60:.0f} minutes, {max(0, left_s) / 60:.0f} are "
            "left before the deadline",
        )
    bound = worst_case(plan, load_prices(admitted.region), "hosts-file")
    others = [
        str(entry.data["bound_usd"])
        for entry in place.entries()
        if entry.kind == "note" and entry.key == record.JOINED_BOUND and entry.data["run"] != run
    ]
    total = money.total([admitted.bound.total_usd, *others, bound.total_usd])
    if not bound.fits or money.amount(total) > money.amount(admitted.budget_usd):
        raise _no(
            place,
            f"with this plan the worst case is {total} USD, over the fleet's ceiling of "
            f"{admitted.budget_usd} USD or the plan's own of {bound.ceiling_usd} USD",
        )
    return bound


def _no(place: FleetPlace, why: str) -> Refused:
    return Refused(
        why, where=place.admitted.fleet, next_command="harness up plan.json (a fleet of its own)"
    )
