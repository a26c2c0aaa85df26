"""decide: every declared measurement and decision, into results.json."""

from __future__ import annotations

from harness.clock import seconds_between
from harness.decide import decide as decided_of
from harness.evidence_folder import materialise, write_receipts
from harness.measuring.measurements import read_measurements
from harness.measuring.results import results
from harness.plan.check import check_plan
from harness.prepared import Prepared
from harness.receipts import (
    Decided,
    DecideReceipt,
    EvaluateReceipt,
    ProbeReceipt,
    ServeReceipt,
    StageName,
    TrainReceipt,
)
from harness.results import Predicted, Shortfall
from harness.stages.stamp import Stamp
from harness.strict import load_file
from harness.study import Receipts, Study
from trainer import contract


def decide(study: Study, done: Receipts, stamp: Stamp) -> DecideReceipt:
    """Compute all statistics from the stored answers, losses and receipts."""
    folder = materialise(study, done)
    prepared = load_file(Prepared, study.prepared_path)
    probed = done.find(ProbeReceipt)
    measured = read_measurements(
        folder,
        study.plan,
        done.find(TrainReceipt),
        done.find(EvaluateReceipt),
        prepared,
        microbatches=probed.microbatch if probed else None,
        serve=done.find(ServeReceipt),
    )
    decisions = decided_of(study.plan, measured, incomplete=done.incomplete is not None)
    value = results(
        plan=study.plan,
        prepared=prepared,
        run=study.run,
        measurements=measured,
        decisions=decisions,
        stages={stage: receipt.seconds for stage, receipt in done.by_stage.items()},
        predicted=_predicted(study, done, prepared),
        inputs=write_receipts(folder, done),
        limits=_limits(study, done, prepared),
        not_run=_not_run(done),
        incomplete=_shortfall(study, done, decisions),
    )
    path = study.folder / "results.json"
    contract.write_json(path, value.to_json())
    return DecideReceipt(
        **stamp.close(),
        decisions=decisions,
        results=study.store.put(path, name="results.json"),
    )


MEASURING: tuple[StageName, ...] = ("select", "evaluate", "serve", "validate")


def _not_run(done: Receipts) -> tuple[StageName, ...]:
    served = done.find(ServeReceipt)
    ran = {name for name in done.by_stage if name != "serve" or (served and served.ran)}
    return tuple(name for name in MEASURING if name not in ran)


def _shortfall(study: Study, done: Receipts, decisions: tuple[Decided, ...]) -> Shortfall | None:
    """What was not done; null in a study that ran to its end."""
    if done.incomplete is None:
        return None
    trained = {arm.arm for arm in done.arms}
    decided = {each.name for each in decisions}
    return Shortfall(
        because=done.incomplete.because,
        why=done.incomplete.why,
        arms_not_run=tuple(name for name in study.plan.arm_names if name not in trained),
        not_decided=tuple(d.name for d in study.plan.decisions if d.name not in decided),
    )


def _limits(study: Study, done: Receipts, prepared: Prepared) -> tuple[str, ...]:
    """Each sentence once: the plan's, the ledger's, and what stages noted."""
    found = [*study.plan.limits, *prepared.notes]
    if done.incomplete:
        found.append(f"The study is incomplete: {done.incomplete.why}.")
    for receipt in done.by_stage.values():
        found += receipt.notes
    return tuple(dict.fromkeys(found))


def _predicted(study: Study, done: Receipts, prepared: Prepared) -> tuple[Predicted, ...]:
    """What `harness check` predicts, beside what was observed so far."""
    report = check_plan(study.loaded, fleet_kind=study.fleet_kind, prepared=prepared)
    observed: dict[str, float] = {name: r.seconds for name, r in done.by_stage.items()}
    for arm in done.arms:
        observed[f"train {arm.arm}"] = arm.attempts[-1].seconds
    evaluated, served = done.find(EvaluateReceipt), done.find(ServeReceipt)
    for model in evaluated.models if evaluated else ():
        observed[f"evaluate {model.name}"] = model.attempts[-1].seconds
    again = study.plan.evaluation.flip_floor
    if again and evaluated and evaluated.floor:
        what = f"evaluate {again.candidate} in batches of {again.batch}"
        observed[what] = evaluated.floor.attempts[-1].seconds
    for phase in served.phases if served else ():
        if phase.outcome == "cut":
            continue
        observed[f"serve {phase.name}"] = seconds_between(phase.started_utc, phase.ended_utc)
    return tuple(
        row.model_copy(update={"observed_s": observed.get(row.what)}) for row in report.times
    )
