"""The receipts and results of the synthetic study that `make_evidence` writes."""

from __future__ import annotations

from functools import partial
from typing import Any

from harness import receipts as r
from harness.fleet.protocol import Deadline
from harness.hosts.protocol import HostFacts
from harness.results import Results
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
        process=whole,
        allocated=whole,
        load=3.0,
        update_sum=whole - 8,
        update_median=(whole - 8) / 16,
        active=whole - 6,
        active_plus_checkpoint=whole - 5,
        loop=whole - 4,
    )


def rank_receipt(arm: str, rank: int, task: str = "train") -> r.RankReceipt:
    """A trainer's receipt."""
    body = {
        "updates": UPDATES,
        "documents": 128,
        "tokens": 10240,
        "targets": 1024,
        "weighted_targets": 1024.0,
        "parameter_root": digest(f"root {arm}"),
        "parameters": 81920,
        "final_loss": FINAL_LOSS.get(arm, 0.0),
        "exchange_sent_bytes": 5_242_880 * (ARMS.get(arm, 1) - 1),
        "exchange_received_bytes": 0,
    }
    return r.RankReceipt(
        contract="harness/contract/1",
        task=task,
        rank=rank,
        workers=ARMS.get(arm, 1),
        recipe_sha256=digest("recipe"),
        source_sha256=digest("trainer"),
        inputs={},
        device="cpu",
        device_name="some processor",
        versions={"torch": "2.9.0"},
        threads=2,
        peak_memory_bytes=512 * 1024 * 1024 + rank,
        peak_memory_of="process",
        traffic=r.Traffic(interface="lo", sent_bytes=4_000_000, received_bytes=4_000_000),
        timers=timers(arm) if arm in ARMS else r.Timers(process=5.0, allocated=5.0),
        body=body if task == "train" else {},
    )


def _distance() -> r.Distance:
    return r.Distance(candidate="pair", reference="single", relative_l2=0.000322, max_abs=0.000801)


def receipts(plan_hash: str) -> list[r.Receipt]:
    """Receipts of every stage up to validate, serve among them as not run."""

    common = partial(_common, plan_hash)
    file = Artifact(name="file", sha256=digest("file"), bytes=10)
    facts = tuple(
        HostFacts(
            name=f"host-{i}",
            hostname="here",
            boot_id="b",
            python="3.11.9",
            cpus=2,
            memory_bytes=8 << 30,
            disk_free_bytes=1 << 34,
            gpus=(),
            clock_utc="-",
        )
        for i in range(2)
    )
    deadlines = (
        Deadline(kind="inner", applies=True, at_utc="-", armed=True, proof="watchdog 4199"),
        Deadline(kind="outer", applies=False, armed=False, proof="not applicable"),
    )
    pushed = tuple(
        r.PushedHost(
            host=f"host-{i}",
            source_sha256=digest("source"),
            environment="as-found",
            environment_path="venv",
            environment_manifest={"torch": "2.9.0", "numpy": "2.3.0"},
            identity=digest("identity"),
            seed_files=(file,),
            moved_bytes=1000,
        )
        for i in range(2)
    )
    return [
        r.PrepareReceipt(
            **common("prepare", 1.5),
            identity=digest("identity"),
            prepared_sha256=digest("prepared"),
            source_sha256=digest("source"),
            prepared_files=(file,),
            seed_files=(file,),
        ),
        r.CommitReceipt(
            **common("commit", 0.3),
            repository="found",
            branch=f"harness/{RUN}",
            commit="ab" * 20,
            paths=("plan.json",),
        ),
        r.PushReceipt(**common("push", 4.5), hosts=pushed),
        r.ProvisionReceipt(
            **common("provision", 0.4),
            fleet_kind="local",
            fleet="local-2f9c",
            hosts=facts,
            deadlines=deadlines,
            worst_case_usd="0",
            ceiling_usd="5.00",
        ),
        r.PreflightReceipt(
            **common("preflight", 3.0, notes=("The clock was not checked.",)),
            device="cpu",
            lines=tuple(
                r.Line(
                    host=f"host-{i}",
                    check="free disk",
                    observed="17.2 GB",
                    required="1 GB",
                    ok=True,
                )
                for i in range(2)
            ),
        ),
        r.ProbeReceipt(
            **common("probe", 12.0),
            microbatch={"single": 4, "pair": 4},
            trials=(
                r.Trial(
                    arm="single",
                    microbatch=4,
                    ok=True,
                    seconds_per_update=1.5,
                    tokens_per_s=853.0,
                    peak_memory_bytes=500_000_000,
                ),
                r.Trial(arm="single", microbatch=8, ok=False, why="out of memory"),
            ),
        ),
        r.TrainReceipt(**common("train", 58.0), arms=tuple(_record(a, file) for a in ARMS)),
        r.SelectReceipt(
            **common("select", 0.2),
            selection_sha256=digest("selection"),
            commit="cd" * 20,
            branch=f"harness/{RUN}",
            candidates={m: digest(f"root {m}") for m in MODELS},
        ),
        r.EvaluateReceipt(
            **common("evaluate", 29.0),
            distances=(_distance(),),
            models=tuple(
                r.ModelScores(
                    name=m,
                    parameter_root=digest(f"root {m}"),
                    attempts=(_attempt("reference", 1, "done"),),
                    answers=(file,),
                    rank=rank_receipt(m, 0, "evaluate"),
                    retention=(file,),
                    scores=file,
                )
                for m in MODELS
            ),
        ),
        r.ServeReceipt(**common("serve", 0.0), ran=False, why="the plan declares no serving phase"),
        r.ValidateReceipt(
            **common("validate", 2.0),
            disagreements=(),
            checks=(
                r.Agreement(check="prompts tokenised again", count=24),
                r.Agreement(check="answers decoded and scored again", count=72),
            ),
        ),
    ]


def decide_receipt(plan_hash: str, found: Results) -> r.DecideReceipt:
    """What decide leaves."""
    file = Artifact(name="results.json", sha256=digest("file"), bytes=10)
    return r.DecideReceipt(
        **_common(plan_hash, "decide", 0.1), decisions=found.decisions, results=file
    )


def _common(plan_hash: str, stage: str, seconds: float, **more: Any) -> dict[str, Any]:
    return {
        "stage": stage,
        "run": RUN,
        "plan_hash": plan_hash,
        "inputs": {},
        "seconds": seconds,
        "started_utc": "2026-11-29T20:00:00.000000Z",
        "finished_utc": "2026-11-29T20:01:00.000000Z",
        **more,
    }


def _attempt(arm: str, number: int, outcome: Any, reason: str = "") -> r.Attempt:
    return r.Attempt(
        number=number,
        outcome=outcome,
        started_utc="-",
        ended_utc="-",
        seconds=PROCESS.get(arm, 9.5),
        exit_codes={"host-0": 0},
        reason=reason,
    )


def _record(arm: str, file: Artifact) -> r.ArmRecord:
    done: tuple[r.Attempt, ...] = (_attempt(arm, 1, "done"),)
    if ARMS[arm] == 2:
        failed = _attempt(arm, 1, "failed", "host-1: connection refused at the start")
        done = (failed, _attempt(arm, 2, "done"))
    return r.ArmRecord(
        arm=arm,
        attempts=done,
        ranks=tuple(rank_receipt(arm, k) for k in range(ARMS[arm])),
        losses=(file,),
        candidate=r.Candidate(arm=arm, parameter_root=digest(f"root {arm}"), files=(file,)),
    )
