"""Decisions: the recorded studies' own, the rules, and what is missing."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.decide import RULES, STATISTICS, decide
from harness.measuring import Measurements
from harness.measuring.question import Found
from harness.plan.decisions import Decision
from harness.receipts import Decided
from tests.unit.decide.recorded_studies import (
    arm,
    batched_arms,
    model,
    pair_of_models,
    plan_of,
    rows,
)

PAIR = {"candidate": "pair", "reference": "single"}
DIFFERENCE = {"statistic": "accuracy-difference", "bound": "lower", "margin": -0.03, "z": 2.576}


def decided(measurements: Measurements, **decision: Any) -> Decided:
    """The one decision of a plan."""
    return decide(plan_of(PAIR | decision), measurements)[0]


class TestRecordedStudies:
    def test_pair_is_within_three_points_of_single(self) -> None:
        found = decided(pair_of_models(733, 5, 15, 271), **DIFFERENCE)
        assert (found.value, found.passed) == (-0.009765625, True)
        assert found.bound_value == pytest.approx(-0.020993825910438788, abs=1e-17)
        for words in ("n=1024, gained 5, lost 15", "99.5 % one-sided", "Newcombe 10", "p=0.994"):
            assert words in found.detail

    def test_clean_single_gains_146_and_loses_none(self) -> None:
        found = decided(
            pair_of_models(23, 146, 0, 87), statistic="mcnemar", bound="at-most", margin=0.01
        )
        assert found.value == pytest.approx(1.12e-44, rel=2e-3)
        assert found.value == 2.0**-146
        assert found.passed and found.bound_value is None

    def test_clean_control_gains_27_and_loses_10(self) -> None:
        counts = pair_of_models(142, 27, 10, 77)
        found = decided(counts, statistic="mcnemar", bound="at-most", margin=0.01)
        assert found.value == pytest.approx(0.003816, abs=5e-7)
        assert found.passed and "0.007632 two-sided" in found.detail
        swapped = decided(
            counts, candidate="single", reference="pair",
            statistic="mcnemar", bound="at-most", margin=0.01,
        )  # fmt: skip
        assert not swapped.passed

    @pytest.mark.parametrize(("timer", "ratio"), [("active", 1.490), ("process", 1.452)])
    def test_pair_is_faster(self, timer: str, ratio: float) -> None:
        found = decided(
            batched_arms(), statistic="speed-ratio", bound="at-least", margin=1.1, timer=timer
        )
        assert found.passed and found.value == pytest.approx(ratio, abs=5e-4)

    def test_pair_costs_more(self) -> None:
        question = {"statistic": "cost-ratio", "bound": "at-most", "margin": 1.0}
        found = decided(batched_arms(), **question, timer="process")
        assert not found.passed and found.value == pytest.approx(1.378, abs=5e-4)
        active = decided(batched_arms(), **question, timer="active")
        assert active.value == pytest.approx(2 * 875.56 / 1304.90)
        assert "slowest rank x workers" in active.detail

    def test_only_transmitted_bytes_count(self) -> None:
        found = decided(batched_arms(), statistic="bytes-ratio", bound="at-most", margin=0.1)
        assert found.value == 151_628_000_000 / 109_000 and not found.passed

    def test_distance_of_clean_pair_and_single(self) -> None:
        question = {"statistic": "parameter-distance", "bound": "at-most", "margin": 0.001}
        found = decided(batched_arms(), **question)
        assert (found.value, found.passed) == (0.000322, True)
        other_way = decided(batched_arms(), **question, candidate="single", reference="pair")
        assert other_way.value == 0.000322 and "relative to 'single'" in other_way.detail


class TestRetention:
    QUESTION: ClassVar[dict[str, Any]] = {
        "statistic": "retention-difference", "bound": "upper", "margin": 0.02, "z": 2.576,
        "probes": "public",
    }  # fmt: skip

    def measured(self, ours: dict[str, float | None], theirs: dict[str, float | None]) -> Decided:
        models = {"single": model("single", (), theirs), "pair": model("pair", (), ours)}
        return decided(Measurements(models, {}, ()), **self.QUESTION)

    def test_pairs_by_id_and_not_by_order(self) -> None:
        found = self.measured({"b": 2.01, "a": 1.01, "c": 3.01}, {"c": 3.0, "a": 1.0, "b": 2.0})
        assert found.value == pytest.approx(0.01)
        assert found.bound_value == pytest.approx(0.01) and found.passed

    def test_a_worse_candidate_fails_by_its_upper_bound(self) -> None:
        found = self.measured({"a": 1.0, "b": 2.05, "c": 3.0}, {"a": 1.0, "b": 2.0, "c": 3.0})
        assert found.value is not None and found.value < 0.02
        assert found.bound_value is not None and found.bound_value > 0.02 and not found.passed

    @pytest.mark.parametrize("bad", [None, math.nan, math.inf])
    def test_a_loss_that_is_not_finite_fails(self, bad: float | None) -> None:
        found = self.measured({"a": bad, "b": 1.0}, {"a": 1.0, "b": 1.0})
        assert (found.value, found.bound_value, found.passed) == (None, None, False)
        assert found.detail == "the loss of 'pair' on document a is not finite"

    def test_documents_that_are_not_paired_fail(self) -> None:
        found = self.measured({"a": 1.0, "b": 1.0}, {"a": 1.0, "c": 1.0})
        assert found.value is None and "document b is not paired" in found.detail

    def test_one_document_has_no_bound(self) -> None:
        assert self.measured({"a": 1.0}, {"a": 1.0}).value is None


class TestRules:
    FOUND = Found(value=0.5, detail="", source="", lower=0.4, upper=0.6)

    @pytest.mark.parametrize(
        ("bound", "margin", "passes"),
        [
            ("lower", 0.4, False), ("lower", 0.399, True), ("upper", 0.6, False),
            ("upper", 0.601, True), ("at-least", 0.5, True), ("at-least", 0.501, False),
            ("at-most", 0.5, True), ("at-most", 0.499, False),
        ],
    )  # fmt: skip
    def test_a_bound_clears_the_margin_and_a_value_may_equal_it(
        self, bound: str, margin: float, passes: bool
    ) -> None:
        assert RULES[bound](self.FOUND, margin) is passes

    def test_no_bound_never_passes(self) -> None:
        without = dataclasses.replace(self.FOUND, lower=None, upper=None)
        assert not RULES["lower"](without, -9) and not RULES["upper"](without, 9)

    def test_every_statistic_of_the_plan_has_a_function(self) -> None:
        declared = Decision.model_fields["statistic"].annotation
        assert set(STATISTICS) == set(declared.__args__)  # type: ignore[union-attr]


class TestScope:
    def test_families_and_wordings_narrow_the_cases(self) -> None:
        # Right are cases 0 to 7: every family, wordings 0 and 1 (trained).
        ours = model("pair", rows([i < 8 for i in range(16)]))
        measured = Measurements({"pair": ours}, {}, ())
        question = {"statistic": "accuracy", "bound": "at-least", "margin": 0.5}

        def value(scope: dict[str, Any]) -> tuple[float | None, str]:
            found = decide(plan_of({"candidate": "pair", **question, "scope": scope}), measured)[0]
            return found.value, found.detail

        assert value({}) == (0.5, "8 of 16 correct")
        assert value({"wordings": "trained"}) == (1.0, "8 of 8 correct")
        assert value({"wordings": "held-out"}) == (0.0, "0 of 8 correct")
        assert value({"families": ["lookup"], "wordings": "trained"}) == (1.0, "2 of 2 correct")

    def test_an_empty_scope_fails(self) -> None:
        ours = model("pair", [row for row in rows([True] * 8) if row.family == "lookup"])
        question = {"statistic": "accuracy", "bound": "at-least", "margin": 0.5}
        scope = {"families": ["sort"]}
        plan = plan_of({"candidate": "pair", **question, "scope": scope})
        found = decide(plan, Measurements({"pair": ours}, {}, ()))[0]
        assert (found.value, found.passed) == (None, False)
        assert found.detail == "'pair' has no scored test case in this scope"


class TestShares:
    def test_valid_json_is_the_candidates_own(self) -> None:
        cases = rows([True, False, False, False], valid=False)
        found = decide(
            plan_of({
                "candidate": "pair", "statistic": "valid-json-share", "bound": "at-least",
                "margin": 0.25,
            }),
            Measurements({"pair": model("pair", cases)}, {}, ()),
        )[0]  # fmt: skip
        assert (found.value, found.passed) == (0.25, True)

    def test_agreement_is_one_or_zero(self) -> None:
        question = {
            "candidate": "pair", "statistic": "parameter-agreement", "bound": "at-least",
            "margin": 1,
        }  # fmt: skip
        agreeing = arm("pair", workers=2, allocated=2.0, process=1.0)
        for agree in (True, False):
            arms = {"pair": agreeing.model_copy(update={"ranks_agree": agree})}
            found = decide(plan_of(question), Measurements({}, arms, ()))[0]
            assert (found.value, found.passed) == (float(agree), agree)


MISSING = [
    (DIFFERENCE, "'pair' was not scored"),
    ({"statistic": "mcnemar", "bound": "at-most", "margin": 1}, "'pair' was not scored"),
    (TestRetention.QUESTION, "'pair' was not scored"),
    (
        {"statistic": "speed-ratio", "bound": "at-least", "margin": 0, "timer": "loop"},
        "'pair' was not trained, so it has no execution",
    ),
    (
        {"statistic": "parameter-distance", "bound": "at-most", "margin": 9},
        "'pair' and 'single' were not compared",
    ),
]


class TestMissing:
    @pytest.mark.parametrize(("question", "sentence"), MISSING)
    def test_nothing_measured_fails_and_says_what(
        self, question: dict[str, Any], sentence: str
    ) -> None:
        found = decided(Measurements({}, {}, ()), **question)
        assert (found.value, found.bound_value, found.passed) == (None, None, False)
        assert found.detail == sentence

    def test_a_timer_that_was_not_reported_fails(self) -> None:
        found = decided(
            batched_arms(), statistic="speed-ratio", bound="at-least", margin=0, timer="loop"
        )
        assert (found.passed, found.detail) == (False, "'single' has no timer 'loop'")

    def test_a_reference_that_sent_nothing_has_no_ratio(self) -> None:
        arms = dict(batched_arms().arms)
        arms["single"] = arms["single"].model_copy(update={"sent_bytes": 0})
        found = decided(
            Measurements({}, arms, ()), statistic="bytes-ratio", bound="at-most", margin=1
        )
        assert not found.passed and found.value is None and "no ratio" in found.detail

    def test_cases_that_are_not_those_prepared_fail(self) -> None:
        whole = pair_of_models(10, 5, 0, 1)
        lacking = dataclasses.replace(whole.models["single"], cases_lack="scores.jsonl is missing")
        models = dict(whole.models) | {"single": lacking}
        found = decided(Measurements(models, {}, ()), **DIFFERENCE)
        assert (found.passed, found.detail) == (False, "'single': scores.jsonl is missing")

    def test_unpaired_cases_fail(self) -> None:
        models = {"single": model("single", rows([True] * 5)), "pair": model("pair", rows([True]))}
        found = decided(Measurements(models, {}, ()), **DIFFERENCE)
        assert found.value is None and "is missing from the candidate" in found.detail

    def test_exploratory_ones_are_computed_and_marked(self) -> None:
        found = decided(pair_of_models(733, 5, 15, 271), **DIFFERENCE, exploratory=True)
        assert found.exploratory and found.passed

    @given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
    def test_no_counts_raise(self, both: int, gained: int, lost: int, neither: int) -> None:
        measured = pair_of_models(both, gained, lost, neither)
        found = decided(measured, **DIFFERENCE)
        n = both + gained + lost + neither
        assert (found.value is None) == (n < 2)
        if found.bound_value is not None:
            assert found.passed == (found.bound_value > -0.03)
