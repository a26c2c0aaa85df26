"""The documents of the synthetic study: plan, prepared inputs, closing record."""

from __future__ import annotations

from typing import Any

from tests.unit.report.receipt_values import ARMS, RUN, UPDATES, digest

RETENTION = 6


def plan_value(cases: int = 24) -> dict[str, Any]:
    """A plan with two arms, two families, four decisions."""

    def arm(name: str, workers: int, exchange: str) -> dict[str, Any]:
        return {
            "name": name, "corpus": "clean", "workers": workers, "microbatch": 4,
            "exchange": {"kind": exchange}, "preserve": "weights", "attempts": 2,
            "limits": {"seconds": 600, "traffic_gb": 5.0},
        }  # fmt: skip

    def decision(name: str, claim: str, statistic: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "claim": claim, "statistic": statistic, **more}

    z = 2.576
    return {
        "schema": "harness/plan/1",
        "name": "two-workers",
        "question": "Do two workers that share dense gradients learn the tasks as well as one, and "
        "do they finish sooner?",
        "seed": "two-workers-1",
        "trainer": {"kind": "bundled"},
        "environment": "as-found",
        "model": {"kind": "trainer"},
        "tokenizer": {"kind": "model"},
        "chat": {"form": "chatml"},
        "data": {
            "tasks": {
                "families": ["lookup", "sort"], "rows": 4, "absent_every": 5,
                "train_wordings": [0, 1], "test_wordings": [0, 1, 2, 3],
            },
            "roles": {"train_tasks": 64, "train_replay": 0, "development": 8, "test": cases},
            "retention": [
                {"name": "passages", "source": {"kind": "passages"}, "count": RETENTION}
            ],
            "weights": {"task": 1.0, "replay": 1.0},
            "exposed": [{"role": "retention", "reason": "the passages come with Harness"}],
        },
        "recipe": {
            "updates": UPDATES, "global_batch": 8, "context_tokens": 512,
            "optimizer": {
                "kind": "adamw", "lr": 0.001, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8,
                "weight_decay": 0.0,
            },
            "schedule": {"kind": "constant", "warmup_updates": 2},
        },
        "arms": [arm("single", 1, "none"), arm("pair", 2, "dense")],
        "evaluation": {"max_new_tokens": 64, "batch": 8},
        "decisions": [
            decision("learns", "One worker gains at least 20 points over the untrained model.",
                     "accuracy-difference", candidate="single", reference="reference",
                     bound="lower", margin=0.2, z=z),
            decision("keeps-up", "Two workers are at most 3 points worse than one.",
                     "accuracy-difference", candidate="pair", reference="single", bound="lower",
                     margin=-0.03, z=z),
            decision("retains", "Two workers lose less than 0.02 nats on the passages.",
                     "retention-difference", candidate="pair", reference="reference",
                     bound="upper", margin=0.02, z=z, probes="passages"),
            decision("faster", "The whole process of two workers is 1.1 times faster.",
                     "speed-ratio", candidate="pair", reference="single", bound="at-least",
                     margin=1.1, timer="process", exploratory=True),
        ],
        "hosts": {"local": {"count": 2}},
        "budget": {
            "ceiling_usd": "5.00", "allowance_usd": "0", "deadline_s": 7200,
            "traffic_gb_per_host": 10.0, "retention_days": 0, "attempts": 1,
        },
        "limits": ["A model of this size shows that the machinery works and little else."],
    }  # fmt: skip


def closing_value() -> dict[str, Any]:
    """A closing record of a local run."""
    line = {
        "what": "host-0 g6e.2xlarge", "quantity": "1343.23", "unit": "s",
        "unit_price_usd": "0.00062278", "sku": "ABCDEF123456", "price_date": "2026-09-01",
        "bound_usd": "0.8365",
    }  # fmt: skip
    return {
        "schema": "harness/closing/1", "plan": "two-workers", "run": RUN,
        "archive": {
            "sha256": digest("archive"), "bytes": 1203160,
            "locator": "runs/store/4a/" + digest("archive"),
        },
        "preservation": {
            "objects": 31, "bytes": 48123456, "reader_pid": 4242,
            "reader": "this computer, another process", "lost": [],
        },
        "release": {"basis": "preserved", "why": ""},
        "ended": ["host-0: no process, secret or temporary file is left.", "host-1: the same."],
        "residue": [],
        "resources": {
            "schema": "harness/resources/1", "fleet": "local-2f9c", "fleet_kind": "local",
            "studies": [RUN], "attempts": 1,
            "hosts": [
                {
                    "host": f"host-{i}", "type": "local", "seconds": 1860.0,
                    "launched_utc": "2026-11-29T20:00:00.000000Z",
                    "ended_utc": "2026-11-29T20:31:00.000000Z",
                }
                for i in range(2)
            ],
            "lines": [line], "allowance_usd": "0", "total_bound_usd": "0.8365",
            "ceiling_usd": "5.00",
            "deadlines": ["inner: watchdog 4199 armed, read back", "outer: not applicable"],
            "residue": [], "preservation_sha256": digest("preserve"), "state": "final",
            "note": "Nothing was billed on this computer; one line stands as an example.",
        },
        "stages": {"seal": 0.8, "preserve": 2.25, "release": 0.01, "terminate": 1.5},
    }  # fmt: skip


def prepared_value(plan_hash: str, cases: int) -> dict[str, Any]:
    """prepared.json."""
    counts = {"documents": 128, "tokens": 20480, "targets": 2048, "weighted_targets": 2048.0}
    return {
        "schema": "harness/prepared/1", "plan": "two-workers", "plan_hash": plan_hash,
        "identity": digest("identity"), "files": [], "source_sha256": digest("source"),
        "trainer_sha256": digest("trainer"), "tokenizer_sha256": digest("tokenizer"),
        "seed_model": {"files": [], "parameter_root": digest("root reference")},
        "arms": dict.fromkeys(ARMS, counts), "roles": {"train": 64, "test": cases},
        "damaged": 0, "longest_tokens": 211, "end_tokens": [2], "exposure": {}, "notes": [],
    }  # fmt: skip
