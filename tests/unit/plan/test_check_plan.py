"""`check_plan`: what a well-formed plan declares, and what is still wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.admission import Earlier
from harness.errors import BadInput
from harness.plan import LoadedPlan, load_plan
from harness.plan.check import CheckReport, check_plan, require_sound
from harness.plan.pins import require_pinned
from harness.prepared import Prepared, TargetCounts
from harness.prices import load_prices

PLANS = Path(__file__).parents[3] / "plans"
PRICES = load_prices("us-east-1")
SERVING = {
    "candidate": "pair",
    "requests": 8,
    "concurrency": 2,
    "attempts": 2,
    "timeout_s": 60,
    "warmup_requests": 1,
    "max_new_tokens": 8,
    "phases": [{"name": "one", "replicas": 1, "fault": "none"}],
}
HUB_MODEL = {"kind": "hub", "repo": "a/b", "revision": "0" * 40}


def loaded(folder: Path, base: str, changes: dict[str, object]) -> LoadedPlan:
    """A shipped plan with values set at JSON pointers."""
    value: Any = json.loads((PLANS / base / "plan.json").read_bytes())
    for pointer, new in changes.items():
        *path, last = pointer.strip("/").split("/")
        here = value
        for step in path:
            here = here[int(step)] if isinstance(here, list) else here[step]
        here[int(last) if isinstance(here, list) else last] = new
    (folder / "plan.json").write_text(json.dumps(value))
    return load_plan(folder)


def report(folder: Path, base: str, changes: dict[str, object]) -> CheckReport:
    return check_plan(loaded(folder, base, changes), prices=PRICES)


def shipped(name: str) -> CheckReport:
    return check_plan(load_plan(PLANS / name), prices=PRICES)


QUICK, COOP, BATCHED = "quickstart", "cooperative-learning", "batched-learning"

# (plan, what is changed, the level, the pointer, words of the sentence)
FINDINGS: list[tuple[str, dict[str, object], str, str, str]] = [
    (QUICK, {"/recipe/schedule/warmup_updates": 16}, "error", "/recipe/schedule/warmup_updates",
     "a warm-up of 16 updates never ends"),
    (QUICK, {"/recipe/schedule/floor": 0.5}, "warning", "/recipe/schedule/floor", "no floor"),
    (QUICK, {"/recipe/context_tokens": 100}, "error", "/recipe/context_tokens", "3 rows"),
    (QUICK, {"/evaluation/max_new_tokens": 512}, "error", "/evaluation/max_new_tokens", "no room"),
    (QUICK, {"/recipe/updates": 8}, "warning", "/recipe/updates", "read 64 of 128"),
    (QUICK, {"/recipe/updates": 17}, "warning", "/recipe/updates", "no whole number of passes"),
    (QUICK, {"/recipe/global_batch": 256}, "error", "/recipe/global_batch", "more than the 128"),
    (QUICK, {"/data/roles/test": 49}, "warning", "/data/roles/test", "over 2 families"),
    (QUICK, {"/data/roles/test": 50}, "warning", "/data/roles/test", "in 4 wordings"),
    (QUICK, {"/data/tasks/families": ["filter", "sort"]}, "warning", "/data/tasks/absent_every",
     "counts lookups"),
    (QUICK, {"/data/weights/task": 0}, "warning", "/data/weights/task", "no weight"),
    (QUICK, {"/decisions/3/probes": "like-replay"}, "warning", "/data/retention/1/source",
     "text like the replay"),
    (QUICK, {"/arms/0/microbatch": 9}, "error", "/arms/0/microbatch", "more than the 8 documents"),
    (QUICK, {"/arms/1/exchange/dense_updates": 16}, "error", "/arms/1/exchange/dense_updates",
     "nothing is compressed"),
    (QUICK, {"/arms/1/exchange/min_compression_rate": 1}, "warning",
     "/arms/1/exchange/min_compression_rate", "save nothing"),
    (QUICK, {"/arms/1/exchange/error_feedback": False}, "warning",
     "/arms/1/exchange/error_feedback", "leave out"),
    (QUICK, {"/arms/1/limits/traffic_gb": 2}, "error", "/arms/1/limits/traffic_gb", "2.2 GB"),
    (QUICK, {"/arms/1/limits/seconds": 60}, "error", "/arms/1/limits/seconds", "measured on 2"),
    (QUICK, {"/budget/deadline_s": 300}, "error", "/budget/deadline_s", "whose times are known"),
    (QUICK, {"/budget/deadline_s": 2000}, "warning", "/budget/deadline_s", "by their limits"),
    (QUICK, {"/budget/traffic_gb_per_host": 5}, "warning", "/budget/traffic_gb_per_host",
     "21 GB a host"),
    (QUICK, {"/hosts": {}}, "error", "/hosts", "no hosts"),
    (QUICK, {"/data/tasks/test_wordings": [0, 1]}, "error", "/decisions/6/scope/wordings",
     "every tested wording is trained"),
    (QUICK, {"/data/tasks/test_wordings": [2, 3],
             "/decisions/6/scope": {"wordings": "trained"}}, "error",
     "/decisions/6/scope/wordings", "none of them is tested"),
    (QUICK, {"/decisions/6/scope": {"families": ["sort"]}}, "error",
     "/decisions/6/scope/families", "'sort', which is no family"),
    (QUICK, {"/decisions/7/reference": "reference"}, "error", "/decisions/7/reference",
     "was never trained"),
    (QUICK, {"/decisions/5/candidate": "reference"}, "error", "/decisions/5/candidate",
     "was never trained"),
    (QUICK, {"/decisions/5/candidate": "single"}, "warning", "/decisions/5/candidate",
     "agrees with itself"),
    (QUICK, {"/decisions/7/statistic": "bytes-ratio"}, "warning", "/decisions/7/reference",
     "lone worker"),
    (QUICK, {"/decisions/4/z": 2.0}, "error", "/decisions/4/z", "sets z"),
    (QUICK, {"/decisions/4/timer": "active"}, "error", "/decisions/4/timer", "sets timer"),
    (QUICK, {"/decisions/0/probes": "passages"}, "error", "/decisions/0/probes", "sets probes"),
    (QUICK, {"/decisions/5/scope": {}}, "error", "/decisions/5/scope", "sets scope"),
    (QUICK, {"/decisions/2/margin": -10}, "error", "/decisions/2/margin", "written as fractions"),
    (QUICK, {"/decisions/7/margin": 0}, "error", "/decisions/7/margin", "ratio with a margin"),
    (QUICK, {"/decisions/1/bound": "at-least"}, "error", "/decisions/1/bound", "large p value"),
    (QUICK, {"/decisions/0/z": 0.5}, "warning", "/decisions/0/z", "unusual bound"),
    (QUICK, {"/decisions/0/z": 25.76}, "warning", "/decisions/0/z", "unusual bound"),
    (QUICK, {"/decisions": []}, "warning", "/decisions", "nothing is decided"),
    (QUICK, {"/serving": {**SERVING, "phases": [{"name": "x", "replicas": 3, "fault": "none"}]}},
     "error", "/serving/phases/0/replicas", "3 replicas on 2 host(s)"),
    (QUICK, {"/serving": {**SERVING, "phases": [{"name": "x", "replicas": 1, "fault": "killed"}]}},
     "warning", "/serving/phases/0/fault", "no request can succeed"),
    (QUICK, {"/serving": {**SERVING, "attempts": 1,
                          "phases": [{"name": "x", "replicas": 2, "fault": "killed"}]}},
     "warning", "/serving/attempts", "no request survives"),
    (QUICK, {"/serving": {**SERVING, "cache": True}}, "warning", "/serving/cache", "measure it"),
    (COOP, {"/data/replay/revision": None}, "error", "/data/replay/revision", "not pinned"),
    (COOP, {"/data/retention/0/source/revision": None}, "error",
     "/data/retention/0/source/revision", "not pinned"),
    (COOP, {"/hosts/aws/zones": ["us-west-2a"]}, "error", "/hosts/aws/zones/0",
     "not in the region"),
    (COOP, {"/hosts/aws/zones": ["us-east-1a", "us-east-1a"]}, "error", "/hosts/aws/zones",
     "twice"),
    (COOP, {"/hosts/aws/types": ["g6e.xlarge", "g6e.xlarge"]}, "error", "/hosts/aws/types",
     "twice"),
    (BATCHED, {"/hosts/aws/zones": ["us-east-1a"]}, "error", "/hosts/aws/placement", "one zone"),
    (COOP, {"/hosts/aws/volume/gib": 70}, "error", "/hosts/aws/volume/gib",
     "less than the 112 GiB"),
    (COOP, {"/hosts/aws/volume": {"gib": 8, "iops": 5000, "throughput_mbps": 125}}, "error",
     "/hosts/aws/volume/iops", "at most 500 IOPS a GiB"),
    (COOP, {"/hosts/aws/volume/throughput_mbps": 1000}, "error",
     "/hosts/aws/volume/throughput_mbps", "0.25 MB/s an IOPS"),
    (COOP, {"/budget/deadline_s": 600}, "error", "/budget/deadline_s", "too short to boot"),
    (COOP, {"/budget/deadline_s": 31 * 86400}, "error", "/budget/deadline_s", "30 days"),
    (COOP, {"/budget/deadline_s": 4000}, "warning", "/budget/deadline_s", "of unknown length"),
    (COOP, {"/budget/ceiling_usd": "50"}, "error", "/budget/ceiling_usd", "ceiling of 50 USD"),
    (COOP, {"/hosts/aws/types": ["g6e.xlarge", "p6.1xlarge"]}, "error", "/budget", "is unknown"),
    (COOP, {"/model": HUB_MODEL}, "error", "/model/parameters", "number of parameters is unknown"),
    (COOP, {"/arms/2/limits/traffic_gb": 1500}, "error", "/arms/2/limits/traffic_gb", "1752.4 GB"),
]  # fmt: skip


class TestFindings:
    @pytest.mark.parametrize(
        ("base", "changes", "level", "pointer", "words"),
        FINDINGS,
        ids=[f"{f[3]}: {f[4]}" for f in FINDINGS],
    )
    def test_each_is_found_at_its_place(
        self,
        tmp_path: Path,
        base: str,
        changes: dict[str, object],
        level: str,
        pointer: str,
        words: str,
    ) -> None:
        found = report(tmp_path, base, changes)
        new = set(found.findings) - set(shipped(base).findings)
        hits = [each for each in new if each.pointer == pointer and words in each.what]
        assert len(hits) == 1, [each.sentence("plan.json") for each in new]
        assert hits[0].level == level

    @pytest.mark.parametrize("base", [QUICK, COOP, BATCHED, "communication"])
    def test_every_sentence_is_one_and_ends_with_one_period(self, base: str) -> None:
        for each in shipped(base).findings:
            said = each.sentence("plan.json")
            assert said.startswith(f"plan.json#{each.pointer}: ")
            assert said.endswith(".") and not said.endswith("..") and "\n" not in said

    def test_errors_come_first(self, tmp_path: Path) -> None:
        changes: dict[str, object] = {"/data/roles/test": 49, "/recipe/schedule/warmup_updates": 16}
        levels = [each.level for each in report(tmp_path, QUICK, changes).findings]
        assert levels == sorted(levels) and set(levels) == {"error", "warning"}

    def test_require_sound_raises_the_first_error_and_counts_the_rest(self, tmp_path: Path) -> None:
        require_sound(shipped(QUICK))
        changes: dict[str, object] = {
            "/decisions/0/z": 0.5,
            "/recipe/schedule/warmup_updates": 16,
            "/decisions/2/margin": -10,
        }
        bad = report(tmp_path, QUICK, changes)
        with pytest.raises(BadInput, match=r"never ends .* \(1 more\)") as caught:
            require_sound(bad)
        assert caught.value.where.endswith("plan.json#/recipe/schedule/warmup_updates")


class TestPins:
    def test_an_unpinned_data_set_is_refused_with_the_command_that_prints_the_revision(
        self, tmp_path: Path
    ) -> None:
        plan = loaded(tmp_path, COOP, {"/data/replay/revision": None})
        with pytest.raises(BadInput) as caught:
            require_pinned(plan)
        assert caught.value.where.endswith("plan.json#/data/replay/revision")
        command = "git ls-remote https://huggingface.co/datasets/HuggingFaceTB/smoltalk HEAD"
        assert caught.value.next_command == command

    def test_a_pinned_plan_passes(self) -> None:
        require_pinned(load_plan(PLANS / COOP))


class TestShippedPlans:
    @pytest.mark.parametrize("name", [QUICK, COOP, BATCHED, "communication"])
    def test_each_checks_without_an_error_and_fits_its_ceiling(self, name: str) -> None:
        found = shipped(name)
        assert found.errors == ()
        assert found.bound is not None and found.bound.fits

    def test_the_quickstart_has_no_warning_either(self) -> None:
        assert shipped(QUICK).findings == ()

    @pytest.mark.parametrize("name", [COOP, BATCHED, "communication"])
    def test_the_only_warning_is_that_their_probes_are_like_the_replay(self, name: str) -> None:
        assert [each.pointer for each in shipped(name).warnings] == ["/data/retention/0/source"]


class TestRows:
    def test_they_are_in_the_order_that_a_person_asks(self) -> None:
        kinds = [row.what.split()[0] for row in shipped(COOP).rows]
        assert list(dict.fromkeys(kinds)) == [
            "question", "model", "tasks", "roles", "retention", "damage", "re-used", "recipe",
            "arm", "decision", "serving", "phase", "AWS", "budget",
        ]  # fmt: skip

    def test_a_bound_says_margin_z_and_one_sided_percent(self) -> None:
        rows = {row.what: row.value for row in shipped(BATCHED).rows}
        assert rows["decision pair-not-worse"] == (
            "the lower bound (z 2.576, 99.5 % one-sided) of the share of right answers of 'pair' "
            "minus that of 'single' is above -0.03 (-3 points)"
        )
        assert rows["decision speed-process"].endswith("by the timer 'process' is at least 1.1")
        assert rows["decision cost-process"].endswith("(exploratory: shown, decides nothing)")

    def test_an_arm_says_workers_exchange_batch_and_limits(self) -> None:
        rows = {row.what: row.value for row in shipped(BATCHED).rows}
        for words in ("2 worker(s)", "powersgd rank 32, error feedback, 8 dense updates first",
                      "128 documents a worker", "microbatch 8", "7,200 s"):  # fmt: skip
            assert words in rows["arm pair"]

    def test_every_decision_has_words(self) -> None:
        for name in (QUICK, COOP, BATCHED, "communication"):
            rows = {row.what: row.value for row in shipped(name).rows}
            for decision in load_plan(PLANS / name).plan.decisions:
                assert "None" not in rows[f"decision {decision.name}"]


class TestTimes:
    def test_every_time_has_a_source_and_the_unknown_is_said(self) -> None:
        for name in (QUICK, COOP, BATCHED, "communication"):
            for each in shipped(name).times:
                assert each.observed_s is None
                assert ("measured on" in each.source or "arithmetic from" in each.source
                        or "measured with" in each.source
                        or each.predicted_s is None)  # fmt: skip
                assert (each.predicted_s is None) == each.source.startswith("unknown")

    def test_the_seed_studies_own_times_come_back(self) -> None:
        batched = {each.what: each.predicted_s for each in shipped(BATCHED).times}
        assert batched["train single"] == pytest.approx(1343.23)
        assert batched["train pair"] == pytest.approx(925.27)
        assert batched["evaluate reference"] is None
        coop = {each.what: each.predicted_s for each in shipped(COOP).times}
        assert coop["train clean"] == pytest.approx(986.84)
        assert coop["train pair"] == pytest.approx(1294.04)
        assert coop["serve two-replicas"] == pytest.approx(36 / 32 * 6.61)

    def test_another_shape_is_unknown(self, tmp_path: Path) -> None:
        found = report(tmp_path, BATCHED, {"/recipe/global_batch": 128})
        assert {each.predicted_s for each in found.times} == {None}
        assert found.known_s == 0

    def test_they_are_named_as_the_stages_and_jobs_are(self) -> None:
        assert [each.what for each in shipped(QUICK).times] == [
            "push", "preflight", "probe", "train single", "train pair", "evaluate reference",
            "evaluate single", "evaluate pair", "validate", "preserve", "terminate",
        ]  # fmt: skip

    def test_mixed_device_types_are_unknown(self, tmp_path: Path) -> None:
        types = ["g6e.2xlarge", "p5en.48xlarge"]
        found = report(tmp_path, BATCHED, {"/hosts/aws/types": types})
        assert {each.predicted_s for each in found.times} == {None}

    def test_prepared_inputs_give_exact_token_counts(self) -> None:
        counts = TargetCounts(documents=128, tokens=7500, targets=1, weighted_targets=1.0)
        prepared = Prepared.model_construct(arms={"single": counts, "pair": counts})
        found = check_plan(load_plan(PLANS / QUICK), prepared=prepared)
        (single,) = (each for each in found.times if each.what == "train single")
        assert single.predicted_s == pytest.approx(7500 / 75 + 63)
        assert "counted in prepared.json" in single.source


class TestCost:
    def test_earlier_launches_count_against_the_ceiling(self) -> None:
        spent = (Earlier(fleet="f-1", bound_usd="12"),)
        found = check_plan(load_plan(PLANS / COOP), prices=PRICES, earlier=spent)
        assert [each.pointer for each in found.errors] == ["/budget/ceiling_usd"]

    def test_without_prices_an_aws_plan_has_no_bound_and_an_error(self) -> None:
        found = check_plan(load_plan(PLANS / COOP))
        assert found.bound is None
        assert [each.pointer for each in found.errors] == ["/budget"]

    def test_the_same_plan_on_this_computer_costs_nothing(self) -> None:
        found = check_plan(load_plan(PLANS / COOP), fleet_kind="local")
        assert found.bound is not None and found.bound.total_usd == "0"
        assert found.fleet_kind == "local"
        assert found.errors == ()
        assert "/hosts/local" in [each.pointer for each in found.warnings]
