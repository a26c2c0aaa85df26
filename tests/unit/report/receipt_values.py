"""The receipts and results of the synthetic study that `make_evidence` writes."""

from __future__ import annotations

from typing import Any

from harness import receipts as r
from harness.fleet.protocol import Deadline
from harness.hosts.protocol import HostFacts
from harness.plan.decisions import Decision
from harness.results import ArmResult, Flips, ModelResult, Predicted, Results, Tally
from harness.store.protocol import Artifact
from trainer import contract

RUN = "two-workers-20261129-2f9c"
ARMS = {"single": 1, "pair": 2}
MODELS = ("reference", *ARMS)
UPDATES = 16
FIRST_LOSS = 4.2
FINAL_LOSS = {"single": 0.92, "pair": 0.95}
PROCESS = {"single": 31.5, "pair": 24.25}


def digest(text: str) -> str:
    """A stand-in hash."""
    return contract.sha256(text.encode())


def timers(arm: str) -> r.Timers:
    """All timers of one arm."""
    whole = PROCESS[arm]
    return r.Timers(
        process=whole, allocated=whole, load=3.0, update_sum=whole - 8, update_median=(whole - 8) / 16,
        active=whole - 6, active_plus_checkpoint=whole - 5, loop=whole - 4,
    )  # fmt: skip


def rank_receipt(arm: str, rank: int, task: str = "train") -> r.RankReceipt:
    """A trainer's receipt."""
    return r.RankReceipt(
        contract="harness/contract/1", task=task, rank=rank, workers=ARMS.get(arm, 1),
        recipe_sha256=digest("recipe"), source_sha256=digest("trainer"), inputs={},
        device="cpu", device_name="some processor", versions={"torch": "2.9.0"}, threads=2,
        peak_memory_bytes=512 * 1024 * 1024 + rank, peak_memory_of="process",
        traffic=r.Traffic(interface="lo", sent_bytes=4_000_000, received_bytes=4_000_000),
        timers=timers(arm) if arm in ARMS else r.Timers(process=5.0, allocated=5.0), body={},
    )  # fmt: skip


def results(
    plan_hash: str, scores: dict[str, list[dict[str, Any]]], means: dict[str, float]
) -> Results:
    """results.json that agrees with the scores."""
    return Results(
        schema_="harness/results/1", plan="two-workers", plan_hash=plan_hash, run=RUN,
        identity=digest("identity"),
        models=tuple(_model(m, rows, means[m]) for m, rows in scores.items()),
        arms=tuple(_arm(name) for name in ARMS),
        flips=(_flips(scores, "single", "reference"), _flips(scores, "pair", "single")),
        distances=(_distance(),), decisions=_decisions(),
        stages={"prepare": 1.5, "train": 58.0},
        predicted=(
            Predicted(what="train single", predicted_s=40.0, source="probe trials", observed_s=31.5),
            Predicted(what="train pair", predicted_s=20.0, source="declared", observed_s=24.25),
        ),
        inputs={"train": digest("receipt train")},
        limits=("Both workers share one computer, so speed says nothing about networks.",),
        not_run=("serve",),
    )  # fmt: skip


def _model(name: str, rows: list[dict[str, Any]], mean: float) -> ModelResult:
    def of(found: list[dict[str, Any]], field: str = "correct") -> Tally:
        return Tally(correct=sum(row[field] for row in found), cases=len(found))

    return ModelResult(
        name=name, parameter_root=digest(f"root {name}"), overall=of(rows),
        families={f: of([x for x in rows if x["family"] == f]) for f in ("lookup", "sort")},
        wordings={str(w): of([x for x in rows if x["wording"] == w]) for w in range(4)},
        held_out=of([x for x in rows if x["wording"] >= 2]), valid_json=of(rows, "valid_json"),
        retention={"passages": mean}, evaluation_seconds=9.5,
    )  # fmt: skip


def _flips(scores: dict[str, list[dict[str, Any]]], candidate: str, reference: str) -> Flips:
    pairs = list(zip(scores[candidate], scores[reference], strict=True))
    return Flips(
        candidate=candidate, reference=reference,
        gained=tuple(a["id"] for a, b in pairs if a["correct"] > b["correct"]),
        lost=tuple(a["id"] for a, b in pairs if a["correct"] < b["correct"]),
    )  # fmt: skip


def _distance() -> r.Distance:
    return r.Distance(candidate="pair", reference="single", relative_l2=0.000322, max_abs=0.000801)


def _arm(name: str) -> ArmResult:
    workers, whole = ARMS[name], PROCESS[name]
    return ArmResult(
        name=name, workers=workers, exchange="none" if workers == 1 else "dense", corpus="clean",
        microbatch=4, attempts=1 if workers == 1 else 2, updates=UPDATES, timers=timers(name),
        wall_seconds=whole + 2, allocated_seconds=whole * workers, tokens=20480, targets=2048,
        weighted_targets=2048.0, tokens_per_s=20480 / (whole - 6),
        peak_memory_bytes=512 * 1024 * 1024 + workers - 1, peak_memory_of="process",
        sent_bytes=0 if workers == 1 else 15_162_800, received_bytes=0 if workers == 1 else 15_162_800,
        exchange_sent_bytes=0 if workers == 1 else 10_485_760, first_loss=FIRST_LOSS,
        final_loss=FINAL_LOSS[name], parameter_root=digest(f"root {name}"), ranks_agree=True,
    )  # fmt: skip


def _decisions() -> tuple[r.Decided, ...]:
    def decided(name: str, statistic: str, candidate: str, reference: str, **more: Any) -> r.Decided:
        return r.Decided(
            name=name, claim="as in the plan", statistic=statistic, candidate=candidate,
            reference=reference, **{"exploratory": False, "detail": "", **more}
        )

    answers = "models/pair/scores.jsonl, models/single/scores.jsonl"
    return (
        decided("learns", "accuracy-difference", "single", "reference", value=2 / 3, bound="lower",
                bound_value=0.3626, margin=0.2, passed=True, detail="17 gained, 1 lost of 24.",
                source="models/single/scores.jsonl, models/reference/scores.jsonl"),
        decided("keeps-up", "accuracy-difference", "pair", "single", value=0.0417, bound="lower",
                bound_value=-0.1713, margin=-0.03, passed=False, source=answers),
        decided("retains", "retention-difference", "pair", "reference", value=0.005, bound="upper",
                bound_value=0.00594, margin=0.02, passed=True, source="models/pair/retention-passages.jsonl"),
        decided("faster", "speed-ratio", "pair", "single", value=31.5 / 24.25, bound="at-least",
                margin=1.1, passed=True, exploratory=True, source="receipt train"),
    )  # fmt: skip


def receipts(plan_hash: str, found: Results) -> list[r.Receipt]:
    """Receipts of every stage up to decide, serve among them as not run."""

    def common(stage: str, seconds: float, **more: Any) -> dict[str, Any]:
        return {
            "stage": stage, "run": RUN, "plan_hash": plan_hash, "inputs": {}, "seconds": seconds,
            "started_utc": "2026-11-29T20:00:00.000000Z",
            "finished_utc": "2026-11-29T20:01:00.000000Z", **more,
        }  # fmt: skip

    file = Artifact(name="file", sha256=digest("file"), bytes=10)
    facts = tuple(
        HostFacts(name=f"host-{i}", hostname="here", boot_id="b", python="3.11.9", cpus=2,
                  memory_bytes=8 << 30, disk_free_bytes=1 << 34, gpus=(), clock_utc="-")
        for i in range(2)
    )  # fmt: skip
    deadlines = (
        Deadline(kind="inner", applies=True, at_utc="-", armed=True, proof="watchdog 4199"),
        Deadline(kind="outer", applies=False, armed=False, proof="not applicable"),
    )
    pushed = tuple(
        r.PushedHost(host=f"host-{i}", source_sha256=digest("source"), environment="as-found", environment_path="venv",
                     environment_manifest={"torch": "2.9.0", "numpy": "2.3.0"},
                     identity=digest("identity"), seed_files=(file,), moved_bytes=1000)
        for i in range(2)
    )  # fmt: skip
    return [
        r.PrepareReceipt(**common("prepare", 1.5), identity=digest("identity"),
                         prepared_sha256=digest("prepared"), source_sha256=digest("source"),
                         prepared_files=(file,), seed_files=(file,)),
        r.CommitReceipt(**common("commit", 0.3), repository="found", branch=f"harness/{RUN}",
                        commit="ab" * 20, paths=("plan.json",)),
        r.PushReceipt(**common("push", 4.5), hosts=pushed),
        r.ProvisionReceipt(**common("provision", 0.4), fleet_kind="local", fleet="local-2f9c",
                           hosts=facts, deadlines=deadlines, worst_case_usd="0", ceiling_usd="5.00"),
        r.PreflightReceipt(**common("preflight", 3.0, notes=("The clock was not checked.",)),
                           device="cpu", lines=tuple(
            r.Line(host=f"host-{i}", check="free disk", observed="17.2 GB", required="1 GB", ok=True)
            for i in range(2))),
        r.ProbeReceipt(**common("probe", 12.0), microbatch={"single": 4, "pair": 4}, trials=(
            r.Trial(arm="single", microbatch=4, ok=True, seconds_per_update=1.5, tokens_per_s=853.0,
                    peak_memory_bytes=500_000_000),
            r.Trial(arm="single", microbatch=8, ok=False, why="out of memory"))),
        r.TrainReceipt(**common("train", 58.0), arms=tuple(_record(a, file) for a in ARMS)),
        r.SelectReceipt(**common("select", 0.2), selection_sha256=digest("selection"),
                        commit="cd" * 20, branch=f"harness/{RUN}",
                        candidates={m: digest(f"root {m}") for m in MODELS}),
        r.EvaluateReceipt(**common("evaluate", 29.0), distances=(_distance(),), models=tuple(
            r.ModelScores(name=m, parameter_root=digest(f"root {m}"), attempts=(), answers=(file,),
                          rank=rank_receipt(m, 0, "evaluate"), retention=(file,), scores=file)
            for m in MODELS)),
        r.ServeReceipt(**common("serve", 0.0), ran=False, why="the plan declares no serving phase"),
        r.ValidateReceipt(**common("validate", 2.0), disagreements=(), checks=(
            r.Agreement(check="prompts tokenised again", count=24),
            r.Agreement(check="answers decoded and scored again", count=72))),
        r.DecideReceipt(**common("decide", 0.1), decisions=found.decisions, results=file),
    ]  # fmt: skip


def _record(arm: str, file: Artifact) -> r.ArmRecord:
    def attempt(number: int, outcome: Any, reason: str = "") -> r.Attempt:
        return r.Attempt(
            number=number, outcome=outcome, started_utc="-", ended_utc="-", seconds=PROCESS[arm],
            exit_codes={"host-0": 0}, reason=reason,
        )  # fmt: skip

    done = (attempt(1, "done"),)
    if ARMS[arm] == 2:
        done = (attempt(1, "failed", "host-1: connection refused at the start"), attempt(2, "done"))
    return r.ArmRecord(
        arm=arm, attempts=done, ranks=tuple(rank_receipt(arm, k) for k in range(ARMS[arm])),
        losses=(file,), candidate=r.Candidate(arm=arm, parameter_root=digest(f"root {arm}"), files=(file,)),
    )  # fmt: skip


__all__ = ["ARMS", "MODELS", "RUN", "UPDATES", "Decision", "digest", "receipts", "results"]
