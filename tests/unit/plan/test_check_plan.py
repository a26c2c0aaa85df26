"""`check_plan`: declared facts, pins, times and cost of a well-formed plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.admission import Earlier
from harness.errors import BadInput
from harness.plan import load_plan
from harness.plan.check import check_plan, require_sound
from harness.plan.pins import require_pinned
from harness.plan.rates import UNITS, UPDATES
from harness.prepared import Prepared, TargetCounts
from tests.unit.plan.shipped import BATCHED, COOP, PLANS, PRICES, QUICK, loaded, report, shipped


class TestErrorsOfAReport:
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
    def test_every_rate_says_where_it_was_measured(self) -> None:
        for rate in (*UPDATES, *UNITS):
            assert rate.source.startswith(("measured on ", "measured with ", "arithmetic from "))

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
