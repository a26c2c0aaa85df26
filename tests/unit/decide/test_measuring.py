"""Measuring: from receipts and files to numbers, with what is missing remembered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.decide import decide
from harness.errors import BadInput
from harness.measuring import Measurements, read_measurements, results
from harness.receipts import RankReceipt, Timers
from harness.results import Flips, Results, Tally
from harness.strict import build
from tests.unit.decide.written_runs import CASES, PROBES, WrittenRun, attempt, rank, record


@pytest.fixture
def run(tmp_path: Path) -> WrittenRun:
    """A whole run, written."""
    found = WrittenRun(tmp_path)
    found.write()
    return found


def measure(run: WrittenRun, **more: Any) -> Measurements:
    """What is measured of a run."""
    return read_measurements(
        run.folder, run.plan(), run.train(), run.evaluate(), run.prepared(), **more
    )


def whole_results(run: WrittenRun) -> Results:
    """Its results.json."""
    plan, measured = run.plan(), measure(run)
    return results(
        plan=plan,
        prepared=run.prepared(),
        run="r1",
        measurements=measured,
        decisions=decide(plan, measured),
        stages={"train": 2.0},
        predicted=(),
        inputs={"train": "d" * 64},
        limits=("Said.",),
        not_run=("serve",),
    )


class TestArms:
    def test_timers_are_the_slowest_ranks_and_allocation_is_summed(self, run: WrittenRun) -> None:
        pair = measure(run).arms["pair"]
        assert (pair.timers.process, pair.timers.active, pair.timers.loop) == (21.0, 11.0, None)
        assert pair.allocated_seconds == 41.0
        assert (pair.workers, pair.updates, pair.attempts) == (2, 2, 2)
        assert (pair.wall_seconds, pair.peak_memory_bytes) == (22.5, 1001)

    def test_a_timer_that_one_rank_lacks_is_absent(self, run: WrittenRun) -> None:
        ranks = [rank(0, 2, loop=5.0), rank(1, 2)]
        run.records[1] = record("pair", ranks, attempts=[attempt(0, "done", 1.0)])
        assert measure(run).arms["pair"].timers.loop is None

    def test_the_loopback_counter_of_one_computer_counts_once(self, run: WrittenRun) -> None:
        pair = measure(run).arms["pair"]
        assert (pair.sent_bytes, pair.received_bytes) == (500, 50)
        assert pair.exchange_sent_bytes == 201

    def test_counters_of_several_hosts_add_up(self, run: WrittenRun) -> None:
        ranks = [rank(i, 2, interface="ens5") for i in (0, 1)]
        run.records[1] = record("pair", ranks, attempts=[attempt(0, "done", 1.0)])
        pair = measure(run).arms["pair"]
        assert (pair.sent_bytes, pair.received_bytes) == (1001, 101)

    def test_tokens_are_those_of_the_prepared_schedule(self, run: WrittenRun) -> None:
        pair = measure(run).arms["pair"]
        assert (pair.tokens, pair.targets, pair.weighted_targets) == (4000, 300, 2400.0)
        assert pair.tokens_per_s == 4000 / 11.0

    def test_losses_are_the_first_and_last_updates(self, run: WrittenRun) -> None:
        pair = measure(run).arms["pair"]
        assert (pair.first_loss, pair.final_loss) == (3.0, 1.5)

    def test_microbatch_is_declared_or_what_probe_chose(self, run: WrittenRun) -> None:
        arms = measure(run, microbatches={"pair": 8, "single": 99}).arms
        assert (arms["single"].microbatch, arms["pair"].microbatch) == (16, 8)
        assert measure(run).arms["pair"].microbatch == 0

    def test_ranks_that_report_another_root_do_not_agree(self, run: WrittenRun) -> None:
        assert measure(run).arms["pair"].ranks_agree
        other = rank(1, 2).model_dump()
        other["body"]["parameter_root"] = "f" * 64
        ranks = [rank(0, 2), build(RankReceipt, other, where="rank")]
        run.records[1] = record("pair", ranks, attempts=[attempt(0, "done", 1.0)])
        assert not measure(run).arms["pair"].ranks_agree

    @pytest.mark.parametrize("numbers", [[0], [0, 0], [1, 2], [0, 1, 2]])
    def test_ranks_that_are_not_the_arms_are_refused(
        self, run: WrittenRun, numbers: list[int]
    ) -> None:
        ranks = [rank(number, 2) for number in numbers]
        run.records[1] = record("pair", ranks, attempts=[attempt(0, "done", 1.0)])
        with pytest.raises(BadInput, match="arm 'pair': has receipts of ranks"):
            measure(run)

    def test_an_arm_without_a_done_attempt_is_refused(self, run: WrittenRun) -> None:
        run.records[0] = record("single", [rank(0, 1)], attempts=[attempt(0, "failed", 1.0)])
        with pytest.raises(BadInput, match="no attempt that was done"):
            measure(run)

    def test_an_arm_that_is_not_in_the_receipt_is_absent(self, run: WrittenRun) -> None:
        del run.records[1]
        assert list(measure(run).arms) == ["single"]
        assert "The arm 'pair' was not trained." in whole_results(run).limits

    @pytest.mark.parametrize(
        ("rows", "fault"),
        [
            ([{"update": 1, "loss": 1.0}], "has 1 updates, and 2 were run"),
            ([{"update": 2, "loss": 1.0}, {"update": 1, "loss": 1.0}], "where 1 is due"),
            ([{"update": 1, "loss": None}], "line 1#/loss"),
        ],
    )
    def test_losses_that_are_not_whole_are_refused(
        self, run: WrittenRun, rows: list[Any], fault: str
    ) -> None:
        run.lines("arms/pair/losses-0.jsonl", rows)
        with pytest.raises(BadInput, match=fault):
            measure(run)

    def test_timers_without_active_give_the_rate_of_the_process(self, run: WrittenRun) -> None:
        bare = rank(0, 1).model_copy(update={"timers": Timers(process=8.0, allocated=8.0)})
        run.records[0] = record("single", [bare], attempts=[attempt(0, "done", 1.0)])
        assert measure(run).arms["single"].tokens_per_s == 500.0


class TestModels:
    def test_models_stand_in_order_with_their_cases(self, run: WrittenRun) -> None:
        models = measure(run).models
        assert list(models) == ["reference", "single", "pair"]
        assert [row.correct for row in models["pair"].cases] == [True, False, True, True]
        assert models["pair"].retention["public"][PROBES[2]] == 3.5
        assert (models["pair"].cases_lack, models["pair"].retention_lack) == ("", {})

    def test_development_cases_never_mix_in(self, run: WrittenRun) -> None:
        rows = run.scores([False] * 4, role="development") + run.scores(run.correct["pair"])
        run.lines("models/pair/scores.jsonl", rows)
        pair = next(m for m in whole_results(run).models if m.name == "pair")
        assert pair.overall == Tally(correct=3, cases=4)

    def lack(self, run: WrittenRun) -> str:
        return measure(run).models["pair"].cases_lack

    def test_what_is_missing_is_remembered(self, run: WrittenRun) -> None:
        rows = run.scores(run.correct["pair"])
        run.lines("models/pair/scores.jsonl", rows[:3])
        assert self.lack(run) == "scores.jsonl has 3 of 4 declared"
        run.lines("models/pair/scores.jsonl", [*rows[:3], rows[3] | {"id": "0" * 64}])
        assert self.lack(run) == f"scores.jsonl has {'0' * 16}, which was not prepared"
        (run.folder / "models/pair/scores.jsonl").unlink()
        assert self.lack(run) == "scores.jsonl is missing"

    def test_what_is_missing_fails_decisions_and_shows_under_limits(self, run: WrittenRun) -> None:
        (run.folder / "models/pair/retention-public.jsonl").unlink()
        question = {
            "name": "d", "claim": "c", "statistic": "retention-difference", "candidate": "pair",
            "reference": "reference", "bound": "upper", "margin": 9, "z": 2.576,
            "probes": "public",
        }  # fmt: skip
        (found,) = decide(run.plan(question), measure(run))
        assert (found.passed, found.detail) == (False, "'pair': retention-public.jsonl is missing")
        written = whole_results(run)
        assert written.models[2].retention == {}
        assert written.limits == (
            "Said.",
            "The evaluation of 'pair' is not whole: retention-public.jsonl is missing.",
        )

    @pytest.mark.parametrize(
        ("change", "fault"),
        [
            (lambda rows: [*rows, rows[0]], "is scored twice"),
            (lambda rows: [rows[0] | {"valid_json": False}], "correct and not valid JSON"),
            (lambda rows: [rows[0] | {"correct": 1}], "line 1#/correct"),
            (lambda rows: [rows[0] | {"more": 1}], "'more' is not known"),
            (lambda rows: [[]], "line 1"),
        ],
    )
    def test_malformed_scores_are_refused(
        self, run: WrittenRun, change: Callable[[list[Any]], list[Any]], fault: str
    ) -> None:
        run.lines("models/pair/scores.jsonl", change(run.scores([True] * 4)))
        with pytest.raises(BadInput, match=fault):
            measure(run)

    def test_a_loss_that_was_not_finite_leaves_no_mean(self, run: WrittenRun) -> None:
        rows = run.retention("pair")
        run.lines("models/pair/retention-public.jsonl", [rows[0] | {"loss": None}, *rows[1:]])
        assert whole_results(run).models[2].retention == {}


class TestResults:
    def test_models_are_counted_by_family_and_wording(self, run: WrittenRun) -> None:
        reference, single, pair = whole_results(run).models
        assert (reference.overall, pair.overall.correct) == (Tally(correct=1, cases=4), 3)
        assert pair.families["filter"] == Tally(correct=0, cases=1)
        assert pair.wordings["2"] == Tally(correct=1, cases=1)
        assert single.held_out == Tally(correct=1, cases=2)
        assert pair.valid_json == Tally(correct=4, cases=4)
        assert reference.valid_json == Tally(correct=3, cases=4)
        assert (pair.retention, pair.evaluation_seconds) == ({"public": 2.5}, 4.5)

    def test_flips_compare_arms_with_reference_and_later_arms_with_the_first(
        self, run: WrittenRun
    ) -> None:
        def flips(candidate: str, reference: str, gained: list[int], lost: list[int]) -> Flips:
            ids = [tuple(sorted(CASES[i] for i in places)) for places in (gained, lost)]
            return Flips(candidate=candidate, reference=reference, gained=ids[0], lost=ids[1])

        assert whole_results(run).flips == (
            flips("single", "reference", [0, 1], []),
            flips("pair", "reference", [0, 2], []),
            flips("pair", "single", [2], [1]),
        )

    def test_what_is_given_is_passed_on(self, run: WrittenRun) -> None:
        found = whole_results(run)
        assert (found.stages, found.inputs) == ({"train": 2.0}, {"train": "d" * 64})
        assert (found.limits, found.not_run) == (("Said.",), ("serve",))
        assert (found.plan, found.plan_hash, found.identity) == ("recorded", "b" * 64, "c" * 64)
        assert found.distances == run.evaluate().distances

    def test_the_same_files_give_the_same_value(self, run: WrittenRun) -> None:
        assert whole_results(run).to_json() == whole_results(run).to_json()
