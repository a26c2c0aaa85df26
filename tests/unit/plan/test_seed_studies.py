"""Every number that the two seed studies declare stands in their plans, figure by figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PLANS = Path(__file__).parents[3] / "plans"


def at(plan: str, pointer: str) -> Any:
    """The value at a JSON pointer of a plan file, as written; '@name' finds a list's entry."""
    here: Any = json.loads((PLANS / plan / "plan.json").read_bytes())
    for step in pointer.strip("/").split("/"):
        if isinstance(here, list):
            named = [
                each for each in here if isinstance(each, dict) and f"@{each.get('name')}" == step
            ]
            here = named[0] if named else here[int(step)]
        else:
            here = here[step]
    return here


SHARED: list[tuple[str, str, object]] = [
    ("all parameters are trained", "/model/parameters", 1_711_376_384),
    ("seed model", "/model/repo", "HuggingFaceTB/SmolLM2-1.7B-Instruct"),
    ("its revision", "/model/revision", "31b70e2e869a7173562077fd711b654946d38674"),
    ("updates", "/recipe/updates", 128),
    ("context", "/recipe/context_tokens", 1024),
    ("optimizer", "/recipe/optimizer/kind", "adamw"),
    ("learning rate", "/recipe/optimizer/lr", 3e-5),
    ("weight decay", "/recipe/optimizer/weight_decay", 0.01),
    ("warm-up", "/recipe/schedule/warmup_updates", 8),
    ("clip", "/recipe/clip_norm", 1.0),
    ("BF16 passes", "/recipe/autocast", "bf16"),
    ("task weight", "/data/weights/task", 8),
    ("replay weight", "/data/weights/replay", 1),
    ("four families", "/data/tasks/families", ["lookup", "filter", "total", "sort"]),
    ("five rows", "/data/tasks/rows", 5),
    ("every fifth lookup is absent", "/data/tasks/absent_every", 5),
    ("trained wordings", "/data/tasks/train_wordings", [0, 1]),
    ("tested wordings", "/data/tasks/test_wordings", [0, 1, 2, 3]),
    ("development cases", "/data/roles/development", 64),
    ("retention probes", "/data/retention/@conversations/count", 128),
    ("probes were exposed", "/data/exposed/0/role", "retention"),
    ("new tokens", "/evaluation/max_new_tokens", 96),
    ("answer bytes", "/evaluation/max_answer_bytes", 32768),
    ("budget of the first arm, s", "/arms/0/limits/seconds", 7200),
    ("budget of the second arm, s", "/arms/1/limits/seconds", 7200),
    ("hosts", "/hosts/aws/count", 2),
    ("region", "/hosts/aws/region", "us-east-1"),
    ("allowance", "/budget/allowance_usd", "10"),
]

BATCHED: list[tuple[str, str, object]] = [
    ("global batch", "/recipe/global_batch", 256),
    ("task documents of 8,192", "/data/roles/train_tasks", 6144),
    ("replay documents of 8,192", "/data/roles/train_replay", 2048),
    ("test cases", "/data/roles/test", 1024),
    ("the compressed arm ran first", "/arms/0/name", "pair"),
    ("one GPU second", "/arms/1/name", "single"),
    ("two workers", "/arms/@pair/workers", 2),
    ("microbatch of the single GPU", "/arms/@single/microbatch", 16),
    ("microbatch of each worker", "/arms/@pair/microbatch", 8),
    ("method", "/arms/@pair/exchange/kind", "powersgd"),
    ("rank", "/arms/@pair/exchange/rank", 32),
    ("error feedback", "/arms/@pair/exchange/error_feedback", True),
    ("dense updates", "/arms/@pair/exchange/dense_updates", 8),
    ("least compression", "/arms/@pair/exchange/min_compression_rate", 2),
    ("epsilon", "/arms/@pair/exchange/epsilon", 1e-8),
    ("100 GiB of one host", "/arms/@single/limits/traffic_gb", 100 * 2**30 / 10**9),
    ("100 GiB each of two", "/arms/@pair/limits/traffic_gb", 200 * 2**30 / 10**9),
    ("gain over the seed", "/decisions/@pair-gains/margin", 0),
    ("its z", "/decisions/@pair-gains/z", 2.576),
    ("three points", "/decisions/@pair-not-worse/margin", -0.03),
    ("its bound", "/decisions/@pair-not-worse/bound", "lower"),
    ("its z", "/decisions/@pair-not-worse/z", 2.576),
    ("against one GPU", "/decisions/@pair-not-worse/reference", "single"),
    ("0.02 nats", "/decisions/@pair-retention/margin", 0.02),
    ("its bound", "/decisions/@pair-retention/bound", "upper"),
    ("its z", "/decisions/@pair-retention/z", 2.576),
    ("against the seed", "/decisions/@pair-retention/reference", "reference"),
    ("active 1.10 times", "/decisions/@speed-active/margin", 1.1),
    ("active timer", "/decisions/@speed-active/timer", "active"),
    ("process 1.10 times", "/decisions/@speed-process/margin", 1.1),
    ("process timer", "/decisions/@speed-process/timer", "process"),
    ("ranks agree", "/decisions/@ranks-agree/margin", 1),
    ("host type", "/hosts/aws/types", ["g6e.2xlarge"]),
    ("separate zones", "/hosts/aws/placement", "spread"),
]

COOPERATIVE: list[tuple[str, str, object]] = [
    ("global batch", "/recipe/global_batch", 8),
    ("task documents", "/data/roles/train_tasks", 768),
    ("replay documents", "/data/roles/train_replay", 256),
    ("test cases", "/data/roles/test", 256),
    ("damage modulus", "/data/damage/modulus", 4),
    ("damage remainder", "/data/damage/remainder", 0),
    ("clean arm", "/arms/@clean/corpus", "clean"),
    ("damaged arm", "/arms/@damaged/corpus", "damaged"),
    ("clean pair", "/arms/@pair/corpus", "clean"),
    ("workers of the clean arm", "/arms/@clean/workers", 1),
    ("workers of the damaged arm", "/arms/@damaged/workers", 1),
    ("workers of the pair", "/arms/@pair/workers", 2),
    ("dense exchange", "/arms/@pair/exchange/kind", "dense"),
    ("whole clean checkpoint is kept", "/arms/@clean/preserve", "full-state"),
    ("weights of the damaged arm", "/arms/@damaged/preserve", "weights"),
    ("weights of the pair", "/arms/@pair/preserve", "weights"),
    ("exact one-sided McNemar", "/decisions/@clean-gains/statistic", "mcnemar"),
    ("0.02 nats", "/decisions/@clean-retention/margin", 0.02),
    ("its z", "/decisions/@clean-retention/z", 2.576),
    ("two points, descriptive", "/decisions/@pair-near-clean/margin", -0.02),
    ("descriptive", "/decisions/@pair-near-clean/exploratory", True),
    ("held-out wordings", "/decisions/@held-out-wordings/scope/wordings", "held-out"),
    ("served model", "/serving/candidate", "pair"),
    ("requests", "/serving/requests", 32),
    ("at once", "/serving/concurrency", 2),
    ("attempts", "/serving/attempts", 2),
    ("time-out, s", "/serving/timeout_s", 60),
    ("warm-up requests", "/serving/warmup_requests", 4),
    ("no cache", "/serving/cache", False),
    ("first phase", "/serving/phases/0/replicas", 1),
    ("second phase", "/serving/phases/1/replicas", 2),
    ("third phase", "/serving/phases/2/replicas", 2),
    ("its fault", "/serving/phases/2/fault", "stopped"),
    ("host type", "/hosts/aws/types", ["g6e.xlarge"]),
    ("one zone", "/hosts/aws/placement", "one-zone"),
    ("root volume, GiB", "/hosts/aws/volume/gib", 200),
    ("read-ahead in training, KiB", "/hosts/aws/read_ahead/training_kib", 128),
    ("read-ahead after it, KiB", "/hosts/aws/read_ahead/staging_kib", 4096),
    ("ceiling", "/budget/ceiling_usd", "100"),
    ("deadline", "/budget/deadline_s", 8 * 3600),
]


def ids(rows: list[tuple[str, str, object]]) -> list[str]:
    return [f"{what} {pointer}" for what, pointer, _ in rows]


@pytest.mark.parametrize("plan", ["batched-learning", "cooperative-learning", "communication"])
@pytest.mark.parametrize(("what", "pointer", "value"), SHARED, ids=ids(SHARED))
def test_what_both_studies_share(plan: str, what: str, pointer: str, value: object) -> None:
    assert at(plan, pointer) == value


@pytest.mark.parametrize(("what", "pointer", "value"), BATCHED, ids=ids(BATCHED))
def test_the_batched_study(what: str, pointer: str, value: object) -> None:
    assert at("batched-learning", pointer) == value


@pytest.mark.parametrize(("what", "pointer", "value"), COOPERATIVE, ids=ids(COOPERATIVE))
def test_the_two_gpu_study(what: str, pointer: str, value: object) -> None:
    assert at("cooperative-learning", pointer) == value


def test_a_pair_of_the_two_gpu_study_processes_four_documents_a_worker() -> None:
    batch = at("cooperative-learning", "/recipe/global_batch")
    assert batch // at("cooperative-learning", "/arms/@pair/workers") == 4


class TestTheTrafficQuestionThatWasLeftOpen:
    """The batched study had no dense pair; this plan has all three, in the same shape."""

    def test_the_recipe_and_data_are_those_of_the_batched_study(self) -> None:
        for part in ("/recipe", "/data", "/evaluation"):
            assert at("communication", part) == at("batched-learning", part)

    def test_three_arms_that_differ_in_exchange(self) -> None:
        arms = at("communication", "/arms")
        assert [(arm["workers"], arm["exchange"]["kind"]) for arm in arms] == [
            (1, "none"),
            (2, "dense"),
            (2, "powersgd"),
        ]
        batched = at("batched-learning", "/arms/@pair")
        assert {**batched, "name": "powersgd"} == at("communication", "/arms/@powersgd")

    @pytest.mark.parametrize("decision", ["fewer-bytes", "faster", "powersgd-not-worse"])
    def test_dense_is_what_compression_is_compared_with(self, decision: str) -> None:
        found = at("communication", f"/decisions/@{decision}")
        assert (found["candidate"], found["reference"]) == ("powersgd", "dense")
        assert "exploratory" not in found
