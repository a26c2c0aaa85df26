"""serve: the declared phases over the selected candidate; a plan without any says 'not run'."""

from __future__ import annotations

from typing import Any

from harness import machine, recipes
from harness.departure import Departure, TimeToLeave, departure_of
from harness.errors import Refused
from harness.hosts.protocol import Host
from harness.plan.serving import Serving
from harness.prepared import Prepared
from harness.receipts import (
    Incomplete,
    PhaseRecord,
    PreflightReceipt,
    PrepareReceipt,
    ProvisionReceipt,
    PushReceipt,
    ServeReceipt,
)
from harness.selection import Selected
from harness.serving.phase import has_begun, run_phase
from harness.serving.stand import Stand
from harness.stages.push import fetch_listing, ready_hosts
from harness.stages.select import require_selection
from harness.stages.stamp import Stamp
from harness.strict import load_file
from harness.study import Receipts, Study
from trainer import contract


def serve(study: Study, done: Receipts, stamp: Stamp) -> ServeReceipt:
    """Run every phase once, in order; a phase that fails stays failed and the next one runs.
    At the point of no return the phase that goes on is cut: its record holds what was answered.

    Raises Refused when no selection is committed or it names another candidate to serve.
    """
    serving = study.plan.serving
    if serving is None:
        return ServeReceipt(**stamp.close(), ran=False, why="the plan declares no serving phases")
    selection = require_selection(study, done)
    if selection.serve != serving.candidate:
        raise Refused(
            f"the selection names '{selection.serve}' to be served, the plan '{serving.candidate}'",
            where="selection.json#/serve",
        )
    chosen = selection.candidates[serving.candidate]
    departure = departure_of(study, done, study.fleet(done.of(ProvisionReceipt)))
    due = departure.due(_hosts(study, done, serving))
    if due and not any(has_begun(study, phase) for phase in serving.phases):
        return ServeReceipt(**stamp.close(), ran=False, why=due.why, incomplete=due)
    stand = _stand(study, done, serving, chosen, departure, bring=due is None)
    phases: list[PhaseRecord] = []
    incomplete: Incomplete | None = None
    try:
        for phase in serving.phases:
            phases.append(run_phase(stand, phase))
            if incomplete := phases[-1].cut:
                break
    except TimeToLeave as left:
        incomplete = left.incomplete
    notes = tuple(map(_note, (each for each in phases if each.outcome != "passed")))
    return ServeReceipt(
        **stamp.close(),
        notes=notes,
        ran=True,
        why="",
        candidate=serving.candidate,
        parameter_root=chosen.parameter_root,
        phases=tuple(phases),
        incomplete=incomplete,
    )


def _note(phase: PhaseRecord) -> str:
    if phase.outcome == "cut":
        return f"The serving phase '{phase.name}' was {phase.why}."
    return f"The serving phase '{phase.name}' failed: {phase.why}"


def _stand(
    study: Study,
    done: Receipts,
    serving: Serving,
    chosen: Selected,
    departure: Departure,
    *,
    bring: bool,
) -> Stand:
    """What all phases share; with `bring`, the candidate's files on every host that serves."""
    provisioned = done.of(ProvisionReceipt)
    hosts = _hosts(study, done, serving)
    listing = [each.to_json() for each in chosen.files]
    local = study.work / f"listing-serve-{serving.candidate}.json"
    contract.write_json(local, listing)
    folder = f"models/{serving.candidate}"
    for host in hosts if bring else ():
        fetch_listing(study, host, folder, local, contract.hash_of(listing))
    prepared = load_file(Prepared, study.prepared_path)
    device = done.of(PreflightReceipt).device

    def recipe(replicas: int) -> dict[str, Any]:
        return recipes.serve(
            study.plan,
            parameter_root=chosen.parameter_root,
            end_tokens=prepared.end_tokens,
            device=device,
            threads=machine.threads_of(study.plan, provisioned, replicas),
        )

    return Stand(
        study=study,
        fleet=study.fleet(provisioned),
        hosts=hosts,
        pushed=done.of(PushReceipt).hosts,
        recipe=recipe,
        model=folder,
        cases=_cases(study, done),
        leave=lambda: departure.due(hosts),
    )


def _hosts(study: Study, done: Receipts, serving: Serving) -> tuple[Host, ...]:
    return ready_hosts(study, done)[: max(phase.replicas for phase in serving.phases)]


def _cases(study: Study, done: Receipts) -> list[tuple[str, list[int]]]:
    """(id, prompt) of the development cases, in their order."""
    name = "development.cases.jsonl"
    path = study.work / "prepared" / name
    files = done.of(PrepareReceipt).prepared_files
    study.store.fetch(next(each for each in files if each.name == name), path)
    return [(row["id"], row["tokens"]) for row in contract.read_lines(path)]
