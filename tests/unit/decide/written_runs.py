"""A small run as its files and receipts: what measuring reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.plan import Plan
from harness.prepared import Prepared, SeedModel, TargetCounts
from harness.receipts import (
    ArmRecord,
    Attempt,
    Candidate,
    Distance,
    EvaluateReceipt,
    ModelScores,
    RankReceipt,
    Timers,
    Traffic,
    TrainReceipt,
)
from harness.store.protocol import Artifact
from harness.strict import build
from tests.unit.decide.recorded_studies import ROOT, plan_value
from trainer import contract

HASH = "b" * 64
CASES = tuple(contract.sha256(b"case %d" % i) for i in range(4))
PROBES = tuple(contract.sha256(b"probe %d" % i) for i in range(3))
FAMILIES = ("lookup", "filter", "sort", "total")
SHARED: dict[str, Any] = {
    "run": "r1", "plan_hash": HASH, "started_utc": "t", "finished_utc": "t", "seconds": 1.0,
    "inputs": {},
}  # fmt: skip


def attempt(number: int, outcome: str, seconds: float) -> Attempt:
    """One start of a job."""
    value = {
        "number": number, "outcome": outcome, "started_utc": "t", "ended_utc": "t",
        "seconds": seconds, "exit_codes": {},
    }  # fmt: skip
    return build(Attempt, value, where="attempt")


def rank(number: int, workers: int, *, interface: str = "lo", **timers: float) -> RankReceipt:
    """The trainer's receipt of one rank; later ranks are slower, sent more and peaked higher."""
    body = {
        "updates": 2, "documents": 8, "tokens": 1, "targets": 1, "weighted_targets": 1.0,
        "parameter_root": ROOT, "parameters": 10, "final_loss": 1.5,
        "exchange_sent_bytes": 100 + number, "exchange_received_bytes": 7,
    }  # fmt: skip
    found = {"process": 20.0 + number, "allocated": 20.0 + number, "active": 10.0 + number}
    return RankReceipt(
        contract="harness/contract/1",
        task="train",
        rank=number,
        workers=workers,
        recipe_sha256=HASH,
        source_sha256=HASH,
        inputs={},
        device="cpu",
        device_name="cpu",
        versions={},
        threads=1,
        peak_memory_bytes=1000 + number,
        peak_memory_of="process",
        traffic=Traffic(interface=interface, sent_bytes=500 + number, received_bytes=50 + number),
        timers=Timers(**(found | timers)),
        body=body,
    )


def record(arm: str, ranks: Sequence[RankReceipt], *, attempts: Sequence[Attempt]) -> ArmRecord:
    """One arm of a train receipt."""
    return ArmRecord(
        arm=arm,
        attempts=tuple(attempts),
        ranks=tuple(ranks),
        losses=(),
        candidate=Candidate(arm=arm, parameter_root=ROOT, files=()),
    )


@dataclass
class WrittenRun:
    """A run of the arms 'single' and 'pair'; tests change it before it is read."""

    folder: Path
    correct: Mapping[str, Sequence[bool]] = field(
        default_factory=lambda: {
            "reference": (False, False, False, True),
            "single": (True, True, False, True),
            "pair": (True, False, True, True),
        }
    )
    records: list[ArmRecord] = field(
        default_factory=lambda: [
            record("single", [rank(0, 1)], attempts=[attempt(0, "done", 21.5)]),
            record(
                "pair",
                [rank(1, 2), rank(0, 2)],
                attempts=[attempt(0, "failed", 3.0), attempt(1, "done", 22.5)],
            ),
        ]
    )

    def write(self) -> None:
        """Write scores, retention losses and losses."""
        for name, correct in self.correct.items():
            self.lines(f"models/{name}/scores.jsonl", self.scores(correct))
            self.lines(f"models/{name}/retention-public.jsonl", self.retention(name))
        for arm in ("single", "pair"):
            losses = [{"update": i, "loss": 3.0 / i, "lr": 0.1, "more": None} for i in (1, 2)]
            self.lines(f"arms/{arm}/losses-0.jsonl", losses)

    @staticmethod
    def scores(correct: Sequence[bool], role: str = "test") -> list[dict[str, Any]]:
        """Lines of scores.jsonl: one case a family and wording."""
        return [
            {
                "id": CASES[i], "role": role, "family": FAMILIES[i], "wording": i,
                "correct": right, "valid_json": right or i > 0, "reason": "", "text": "{}",
            }
            for i, right in enumerate(correct)
        ]  # fmt: skip

    @staticmethod
    def retention(name: str) -> list[dict[str, Any]]:
        """Lines of retention-public.jsonl."""
        more = {"reference": 0.0, "single": 0.25, "pair": 0.5}[name]
        return [{"id": one, "loss": 1.0 + i + more, "targets": 9} for i, one in enumerate(PROBES)]

    def lines(self, name: str, rows: Sequence[Any]) -> None:
        """Write one of its .jsonl files."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        contract.write_lines(path, rows)

    def plan(self, *decisions: Mapping[str, Any]) -> Plan:
        """The run's plan."""
        return build(Plan, plan_value(decisions), where="plan")

    def train(self) -> TrainReceipt:
        """Its train receipt."""
        return TrainReceipt(stage="train", arms=tuple(self.records), **SHARED)

    def evaluate(self) -> EvaluateReceipt:
        """Its evaluate receipt."""
        artifact = Artifact(name="scores.jsonl", sha256=HASH, bytes=1)
        models = tuple(
            ModelScores(
                name=name,
                parameter_root=ROOT,
                attempts=(attempt(0, "done", 4.5),),
                rank=rank(0, 1),
                answers=(),
                retention=(),
                scores=artifact,
            )
            for name in self.correct
        )
        distance = Distance(candidate="pair", reference="single", relative_l2=0.5, max_abs=1.0)
        return EvaluateReceipt(stage="evaluate", models=models, distances=(distance,), **SHARED)

    @staticmethod
    def prepared() -> Prepared:
        """Its prepared.json."""
        counts = TargetCounts(documents=8, tokens=4000, targets=300, weighted_targets=2400.0)
        return Prepared(
            schema="harness/prepared/1",
            plan="recorded",
            plan_hash=HASH,
            identity="c" * 64,
            files=(),
            source_sha256=HASH,
            trainer_sha256=HASH,
            tokenizer_sha256=HASH,
            seed_model=SeedModel(files=()),
            arms={"single": counts, "pair": counts},
            roles={"test": 4},
            end_tokens=(2,),
            damaged=0,
            longest_tokens=60,
            exposure={
                "test": tuple(one[:16] for one in CASES),
                "retention": tuple(one[:16] for one in PROBES),
            },
        )
