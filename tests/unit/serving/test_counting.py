"""From events to fates and figures, with every number worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import BadInput
from harness.measuring.served import agree, percentile, summarise
from harness.serving.fates import Event, PhaseFiles, ServedLine, fates_of, wall_seconds
from harness.serving.order import arrivals
from tests.unit.serving.events_values import (
    CASES,
    answer,
    event,
    files_of,
    order_for,
    phase_of,
    record_of,
    serving_of,
)


def served(*names: str) -> list[ServedLine]:
    """A replica that began and completed these."""
    return [
        ServedLine(event=kind, request=name, stopped="end" if kind == "ended" else "")
        for name in names
        for kind in ("began", "ended")
    ]  # fmt: skip


def story() -> tuple[PhaseFiles, list[str]]:
    """Four requests: plain, retried after a refusal, late (executed twice), and lost."""
    phase = phase_of("both")
    order = order_for(serving_of(phase), phase)
    a, b, c, d = (each.request for each in order.requests)
    events = [
        event("began", 0.0, session=1, utc="t"),
        event("warm-up", 0.5, request="warm-x", replica="host-0", outcome="answered", seconds=0.1),
        event("measure", 1.0),
        event("send", 1.0, request=a, attempt=1, replica="host-0"),
        event("end", 1.2, request=a, attempt=1, outcome="answered", seconds=0.2, status=200,
              said="", answer=answer([5, 6], 0.2)),
        event("send", 1.2, request=b, attempt=1, replica="host-1"),
        event("end", 1.2, request=b, attempt=1, outcome="refused", seconds=0.0, status=0, said="",
              answer=None),
        event("send", 1.2, request=b, attempt=2, replica="host-0"),
        event("end", 1.5, request=b, attempt=2, outcome="answered", seconds=0.3, status=200,
              said="", answer=answer([5], 0.4)),
        event("send", 1.5, request=c, attempt=1, replica="host-0"),
        event("end", 2.5, request=c, attempt=1, outcome="timed-out", seconds=1.0, status=0,
              said="", answer=None),
        event("send", 2.5, request=c, attempt=2, replica="host-1"),
        event("end", 2.6, request=c, attempt=2, outcome="answered", seconds=0.1, status=200,
              said="", answer=answer([9], 1.1)),
        event("send", 2.6, request=d, attempt=1, replica="host-1"),
        event("end", 2.7, request=d, attempt=1, outcome="reset", seconds=0.1, status=0, said="",
              answer=None),
        event("send", 2.7, request=d, attempt=2, replica="host-0"),
        event("end", 3.0, request=d, attempt=2, outcome="truncated", seconds=0.3, status=200,
              said="", answer=None),
        event("failed", 3.0, request=d, latency_s=0.4),
        event("finished", 3.0),
    ]  # fmt: skip
    return files_of(order, events, [served(a, b, c, d), served(c)]), [a, b, c, d]


def test_every_request_has_its_fate() -> None:
    files, names = story()
    fates = fates_of(files)
    assert [fate.request for fate in fates] == names
    assert [[a.outcome for a in fate.attempts] for fate in fates] == [
        ["answered"], ["refused", "answered"], ["timed-out", "answered"], ["reset", "truncated"],
    ]  # fmt: skip
    assert [fate.executions for fate in fates] == [1, 1, 2, 1]
    assert [fate.tokens for fate in fates] == [2, 1, 1, 0]
    assert fates[3].latency_s is None and fates[3].tokens_sha256 is None


def test_a_phase_in_figures() -> None:
    files, _ = story()
    phase = phase_of("both")
    found = summarise(
        serving_of(phase), phase, record_of("both", files, "failed", "1 of 4"), {"both": files}
    )
    assert (found.requests, found.answered) == (4, 3)
    assert (found.first_failures, found.retries_answered) == (3, 2)
    assert found.failures == {"refused": 1, "reset": 1, "timed-out": 1, "truncated": 1}
    assert found.duplicates == 1
    assert found.wall_s == 2.0
    assert found.requests_per_s == 1.5
    assert found.tokens_per_s == 2.0
    assert found.latency_s["p50"] == 0.4
    assert found.latency_s["mean"] == pytest.approx((0.2 + 0.4 + 1.1) / 3, abs=1e-6)
    assert found.agreement is None and found.compared == 0


def test_a_client_that_was_ended_goes_on_and_is_not_a_failure() -> None:
    phase = phase_of("one", 1)
    order = order_for(serving_of(phase, requests=2), phase)
    a, b = (each.request for each in order.requests)
    events = [
        event("began", 0.0, session=1, utc="t"),
        event("measure", 1.0),
        event("send", 1.0, request=a, attempt=1, replica="host-0"),
        event("send", 1.0, request=b, attempt=1, replica="host-0"),
        event("end", 2.0, request=a, attempt=1, outcome="answered", seconds=1.0, status=200,
              said="", answer=answer([1], 1.0)),
        event("began", 0.0, session=2, utc="t"),
        event("interrupted", 0.0, request=b, attempt=1),
        event("measure", 0.1),
        event("send", 0.1, request=b, attempt=2, replica="host-0"),
        event("end", 0.6, request=b, attempt=2, outcome="answered", seconds=0.5, status=200,
              said="", answer=answer([1], 0.5)),
        event("finished", 0.6),
    ]  # fmt: skip
    files = files_of(order, events, [served(a, b, b)])
    found = summarise(serving_of(phase, requests=2), phase, record_of("one", files), {"one": files})
    assert (found.sessions, found.first_failures, found.duplicates) == (2, 0, 1)
    assert found.failures == {"interrupted": 1}
    assert found.wall_s == 1.5


def answered(order_run: str, name: str, by_case: dict[int, dict[str, object]]) -> PhaseFiles:
    phase = phase_of(name, 1)
    order = order_for(serving_of(phase), phase, order_run)
    events: list[Event] = []
    for place, value in by_case.items():
        request = order.requests[place].request
        events.append(event("send", 1.0, request=request, attempt=1, replica="host-0"))
        events.append(event("end", 2.0, request=request, attempt=1, outcome="answered",
                            seconds=1.0, status=200, said="", answer=value))  # fmt: skip
    return files_of(order, events)


def test_agreement_is_by_case_over_all_phases_and_knows_near_ties() -> None:
    files = {
        "x": answered("r", "x", {0: answer([1, 2, 3]), 1: answer([4]), 2: answer([5, 6])}),
        "y": answered("r", "y", {0: answer([1, 2, 3]), 1: answer([4, 9], ties=[1]),
                                 2: answer([5, 7]), 3: answer([8])}),
    }  # fmt: skip
    for name in ("x", "y"):
        found = agree(name, files)
        assert (found.compared, found.same, found.near_ties) == (3, 1, 1), name


def test_identities_are_fresh_in_every_run_and_phase_and_the_same_in_a_rerun() -> None:
    one, other = phase_of("one", 1), phase_of("other", 1)
    serving = serving_of(one, other)
    names = [
        {each.request for each in order_for(serving, phase, run).requests}
        for phase in (one, other)
        for run in ("r1", "r2")
    ]
    assert len(set.union(*names)) == 4 * len(CASES)
    assert order_for(serving, one) == order_for(serving, one)
    assert [each.case for each in order_for(serving, one).requests] == [id_ for id_, _ in CASES]
    assert all(each.request.startswith("warm-") for each in order_for(serving, one).warmups)


@pytest.mark.parametrize(
    "events",
    [
        [event("send", 1.0, request="stranger", attempt=1, replica="host-0")],
        [event("end", 1.0, request="", attempt=1, outcome="reset", seconds=0, status=0, said="")],
    ],
)
def test_events_that_do_not_fit_the_order_are_refused(events: list[Event]) -> None:
    phase = phase_of("both")
    with pytest.raises(BadInput):
        fates_of(files_of(order_for(serving_of(phase), phase), events))


def test_without_a_measurement_there_is_no_wall_time() -> None:
    assert wall_seconds([event("began", 0.0, session=1, utc="t")]) is None


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.sampled_from((0, 1, 50, 95, 99, 100))
)
def test_percentiles_are_numpys_default(values: list[float], percent: int) -> None:
    assert percentile(values, percent) == pytest.approx(np.percentile(values, percent), rel=1e-9)


@given(st.floats(0.1, 1000), st.integers(1, 300))
def test_arrivals_rise_from_zero(rate: float, count: int) -> None:
    found = arrivals(rate, count, "seed")
    assert len(found) == count
    assert found[0] == 0
    assert list(found) == sorted(found)
    assert found == arrivals(rate, count, "seed")


def test_arrivals_come_at_the_mean_rate() -> None:
    found = arrivals(20.0, 4000, "seed")
    assert (len(found) - 1) / found[-1] == pytest.approx(20.0, rel=0.05)
