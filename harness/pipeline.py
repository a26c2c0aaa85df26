"""The stages in order. Nothing else decides order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness import receipts as r
from harness.clock import parse_utc
from harness.errors import Waiting
from harness.stages.commit import commit
from harness.stages.decide import decide
from harness.stages.evaluate import evaluate
from harness.stages.preflight import preflight
from harness.stages.prepare import prepare
from harness.stages.preserve import preserve
from harness.stages.probe import probe
from harness.stages.provision import provision
from harness.stages.push import push
from harness.stages.recheck import recheck
from harness.stages.release import release
from harness.stages.report import report
from harness.stages.seal import seal
from harness.stages.select import select
from harness.stages.serve import serve
from harness.stages.stamp import Stamp
from harness.stages.terminate import terminate
from harness.stages.train import train
from harness.stages.validate import validate
from harness.strict import build
from harness.study import Receipts, Study
from trainer import contract


@dataclass(frozen=True)
class Stage:
    """A stage's name, its function and the receipts that it reads."""

    name: r.StageName
    run: Callable[[Study, Receipts, Stamp], r.Receipt]
    reads: tuple[r.StageName, ...] = ()
    closes: bool = False
    """Runs also in a study that had to end early."""


FLEET: tuple[r.StageName, ...] = ("provision", "push")
SCORED: tuple[r.StageName, ...] = (
    "prepare", "commit", "push", "probe", "train", "select", "evaluate",
)  # fmt: skip

STAGES: tuple[Stage, ...] = (
    Stage("prepare", prepare),
    Stage("commit", commit, ("prepare",)),
    Stage("provision", provision, ("commit",)),
    Stage("push", push, ("prepare", "provision")),
    Stage("preflight", preflight, FLEET),
    Stage("probe", probe, (*FLEET, "preflight")),
    Stage("train", train, ("commit", *FLEET, "preflight", "probe")),
    Stage("recheck", recheck, (*FLEET, "preflight", "train")),
    Stage("select", select, ("commit", "train")),
    Stage("evaluate", evaluate, ("prepare", "commit", *FLEET, "preflight", "train", "select")),
    Stage("serve", serve, ("prepare", "commit", *FLEET, "preflight", "select")),
    Stage("validate", validate, (*SCORED, "serve")),
    Stage("decide", decide, (*SCORED, "serve", "validate"), closes=True),
    Stage("seal", seal, (*SCORED, "decide"), closes=True),
    Stage("preserve", preserve, ("prepare", *FLEET, "train", "evaluate", "seal"), closes=True),
    Stage("release", release, ("preserve",), closes=True),
    Stage("terminate", terminate, ("provision", "preserve", "release"), closes=True),
    Stage("report", report, ("seal", "preserve", "release", "terminate"), closes=True),
)

HOSTLESS: tuple[Stage, ...] = STAGES[:2]
"""prepare and commit: they need no hosts, and are done before any is launched for a run."""

DEVELOPMENT: tuple[r.StageName, ...] = (
    "prepare", "provision", "push", "preflight", "probe", "train",
)  # fmt: skip
"""The stages of a `harness develop` run before it scores development cases."""


def advance(study: Study, stages: tuple[Stage, ...] = STAGES) -> Receipts:
    """Run every stage whose receipt is not in the journal with the same inputs.

    Once a receipt says that the study had to end early, only the stages that close it follow.
    Raises a HarnessError of the stage that stopped; the same call goes on there.
    """
    done = Receipts({})
    for stage in stages:
        if done.incomplete and not stage.closes:
            continue
        inputs = _inputs(study, stage, done)
        receipt = recorded(study, stage.name, inputs)
        if receipt is None:
            receipt = _run(study, stage, done, inputs)
        _write_out(study, receipt)
        done = Receipts({**done.by_stage, stage.name: receipt})
        if isinstance(receipt, r.ProvisionReceipt):
            _watch_deadline(study, receipt)
    return done


def _watch_deadline(study: Study, provisioned: r.ProvisionReceipt) -> None:
    """Somebody is told in time, and what is left is shown, as long as there are hosts."""
    if study.journal.find("receipt", "terminate") is None:
        meter = study.meter(provisioned)
        study.progress.limits(lambda: meter.left(study.clock.now()))
        deadline_utc = study.fleet(provisioned).deadline_utc
        left_s = (parse_utc(deadline_utc) - study.clock.now()).total_seconds()
        study.notices.watch_deadline(left_s, deadline_utc)


def recorded(
    study: Study, name: r.StageName, inputs: dict[str, str] | None = None
) -> r.Receipt | None:
    """A stage's receipt from the journal, when it was made from the same inputs."""
    entry = study.journal.find("receipt", name)
    if entry is None:
        return None
    receipt = build(r.RECEIPTS[name], entry.data, where=f"{study.journal.path} entry {entry.seq}")
    return receipt if inputs is None or receipt.inputs == inputs else None


def _inputs(study: Study, stage: Stage, done: Receipts) -> dict[str, str]:
    """Hashes of the plan and of the receipts that the stage reads."""
    found = {"plan": study.loaded.hash}
    for name in stage.reads:
        if name in done.by_stage:
            found[name] = contract.hash_of(done.by_stage[name].to_json())
    return found


def _run(study: Study, stage: Stage, done: Receipts, inputs: dict[str, str]) -> r.Receipt:
    study.progress.stage(stage.name)
    stamp = Stamp(study, stage.name, study.clock.utc(), study.clock.monotonic(), inputs)
    try:
        receipt = stage.run(study, done, stamp)
    except Waiting as error:
        error.next_command = error.next_command or study.again()
        raise
    study.journal.append("receipt", stage.name, receipt.to_json())
    study.progress.done(stage.name, receipt.seconds)
    return receipt


def _write_out(study: Study, receipt: r.Receipt) -> None:
    """receipts/STAGE.json; the journal is the truth and the file is made again from it."""
    path = study.folder / "receipts" / f"{receipt.stage}.json"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        contract.write_json(path, receipt.to_json())


def abandon(study: Study) -> Receipts:
    """Give up preservation: record why, open the gate and end the fleet, if there is one.

    Receipts of the stages that did run stay as they are.
    """
    done = Receipts({})
    for stage in STAGES:
        if (receipt := recorded(study, stage.name)) is not None:
            done = Receipts({**done.by_stage, stage.name: receipt})
    for stage in STAGES:
        needed = stage.name == "release" or (
            stage.name == "terminate" and "provision" in done.by_stage
        )
        if needed and stage.name not in done.by_stage:
            receipt = _run(study, stage, done, _inputs(study, stage, done))
            _write_out(study, receipt)
            done = Receipts({**done.by_stage, stage.name: receipt})
    return done
