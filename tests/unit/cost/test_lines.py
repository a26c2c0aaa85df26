"""The bound of a fleet: every line to the last digit, and more never costs less."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from harness import money
from harness.admission import worst_case
from harness.cost.lines import cost_lines, total_of
from harness.cost.observed import Observed, Stored
from harness.errors import Refused
from harness.plan import load_plan
from harness.prices import PriceFile
from harness.results import CostLine
from tests.unit.cost.lives import PRICES, at, host, observed, resources, volume

SECONDS = st.integers(0, 10**6)


def usd(seen: Observed) -> Decimal:
    return money.amount(total_of(cost_lines(seen, PRICES), "0"))


def lines(seen: Observed) -> dict[str, CostLine]:
    return {line.what: line for line in cost_lines(seen, PRICES)}


class TestTheBatchedStudy:
    """2,723,269,786,844 bytes at 0.02 USD a GB, a compute bound and an allowance of 10."""

    def test_to_the_last_digit(self) -> None:
        priced = {**PRICES.price("traffic/cross-zone").to_json(), "usd": "0.02"}
        prices = PriceFile.model_validate({**PRICES.to_json(), "prices": (priced,)}, strict=False)
        sent = 2_723_269_786_844
        seen = observed((host(end=0, public_address=False, sent_bytes=sent),))
        traffic = _traffic_only(seen, prices)
        assert [line.bound_usd for line in traffic] == ["54.46539573688"]
        compute = CostLine(
            what="hosts", quantity="1", unit="bound", unit_price_usd="12.636554723575202",
            sku="BoxUsage:g6e.xlarge", price_date="2026-11", bound_usd="12.636554723575202",
        )  # fmt: skip
        assert total_of([*traffic, compute], "10") == "77.101950460455202"


def _traffic_only(seen: Observed, prices: PriceFile) -> tuple[CostLine, ...]:
    both = PriceFile(
        schema="harness/prices/1", region="us-east-1", checked="2026-11", source="x",
        prices=(*prices.prices, *(p for p in PRICES.prices if p.name.startswith("ec2/"))),
    )  # fmt: skip
    return tuple(x for x in cost_lines(seen, both) if "traffic" in x.what)


class TestLines:
    def test_two_hosts_of_the_two_gpu_study(self) -> None:
        seen = observed((host(0, 0, 5400), host(1, 10, 5410)))
        found = lines(seen)
        each = found["host 0 of attempt 1.0 (i-00000000000000000), g6e.xlarge"]
        assert (each.quantity, each.unit, each.unit_price_usd) == ("1.5", "host-hour", "1.861")
        assert (each.sku, each.price_date) == ("BoxUsage:g6e.xlarge", "2026-11")
        assert each.bound_usd == "2.7915"
        address = found["host 1 of attempt 1.0 (i-00000000000000001), public IPv4 address"]
        assert address.bound_usd == "0.0075"
        assert usd(seen) == Decimal("2.7915") * 2 + Decimal("0.0075") * 2

    def test_a_launch_that_failed_costs_a_minute(self) -> None:
        failed = lines(observed((host(0, 0, 2),)))
        assert {line.quantity for line in failed.values()} == {money.text(money.hours(60))}

    def test_a_host_that_is_still_there_counts_until_its_deadline_has_fired(self) -> None:
        found = lines(observed((host(0, 0, None),)))
        assert next(iter(found.values())).quantity == money.text(money.hours(7260))

    def test_one_that_outlived_its_deadline_counts_until_it_was_looked_at(self) -> None:
        found = lines(observed((host(0, 0, None),), at_utc=at(20_000)))
        assert next(iter(found.values())).quantity == money.text(money.hours(20_000))

    def test_a_volume_with_more_than_is_free(self) -> None:
        found = lines(observed((), (volume(iops=5000, throughput_mbps=500, end=2_592_000),)))
        assert {what: line.bound_usd for what, line in found.items()} == {
            "volume vol-1, 100 GiB": "8",
            "volume vol-1, IOPS over 3,000": "10",
            "volume vol-1, throughput over 125 MB/s": "15",
        }

    def test_traffic_that_was_not_measured_is_the_cap(self) -> None:
        seen = observed((host(0, sent_bytes=None, received_bytes=5), host(1, sent_bytes=7)))
        found = lines(seen)
        what = "hosts' traffic, sent (1 host(s) at the plan's cap)"
        assert found[what].quantity == "1000.000000007"
        assert found["hosts' traffic, received"].quantity == "0.000000005"

    def test_what_is_stored_and_read_back(self) -> None:
        stored = Stored(bytes=10**9, days=30, puts=1000, gets=10_000, read_outside_bytes=10**9)
        found = lines(observed(stored=stored))
        assert [line.bound_usd for line in found.values()] == ["0.023", "0.005", "0.004", "0.09"]

    def test_an_unknown_price_is_refused(self) -> None:
        with pytest.raises(Refused, match="p6"):
            cost_lines(observed((host(type="p6.48xlarge"),)), PRICES)

    def test_an_end_before_the_beginning_is_an_error(self) -> None:
        with pytest.raises(ValidationError, match="ends before"):
            host(0, 10, 9)


class TestMoreNeverCostsLess:
    @given(st.lists(st.tuples(SECONDS, SECONDS), max_size=4), SECONDS, SECONDS)
    @settings(deadline=None, max_examples=40)
    def test_an_attempt(self, before: list[tuple[int, int]], begin: int, life: int) -> None:
        hosts = tuple(host(i, a, a + b) for i, (a, b) in enumerate(before))
        more = (*hosts, host(9, begin, begin + life))
        assert usd(observed(more)) > usd(observed(hosts))

    @given(SECONDS, st.integers(1, 10**6))
    @settings(deadline=None, max_examples=40)
    def test_a_second_of_a_host_or_volume(self, life: int, more: int) -> None:
        def make(end: int, of_host: bool) -> Observed:
            return observed((host(0, 0, end),)) if of_host else observed((), (volume(0, end),))

        for of_host in (True, False):
            shorter, longer = usd(make(life, of_host)), usd(make(life + more, of_host))
            assert shorter <= longer
            assert shorter < longer or life + more <= money.MINIMUM_BILLED_S

    @given(SECONDS)
    @settings(deadline=None, max_examples=40)
    def test_not_knowing_the_end_costs_no_less_than_any_end_so_far(self, end: int) -> None:
        open_end = observed((host(0, 0, None),), at_utc=at(10**6))
        assert usd(open_end) >= usd(observed((host(0, 0, end),), at_utc=at(10**6)))

    @given(st.integers(0, 10**11), st.integers(1, 10**9))
    @settings(deadline=None, max_examples=40)
    def test_a_byte(self, count: int, more: int) -> None:
        for name in ("sent_bytes", "received_bytes"):
            less = usd(observed((host(**{name: count}),)))
            assert less < usd(observed((host(**{name: count + more}),)))
        for name in ("bytes", "read_outside_bytes", "puts", "gets"):
            fewer = observed(stored=Stored(days=30, **{name: count}))
            assert usd(fewer) < usd(observed(stored=Stored(days=30, **{name: count + more})))


class TestTheAdmittedWorstCase:
    """What was admitted covers every fleet that keeps to its plan, whatever happened to it."""

    LOADED = load_plan(Path(__file__).parents[3] / "plans" / "batched-learning" / "plan.json")

    @given(st.lists(st.tuples(st.integers(0, 28_800), st.integers(0, 3600),
                              st.integers(0, 250 * 10**9)), min_size=2, max_size=2))  # fmt: skip
    @settings(deadline=None, max_examples=60)
    def test_it_is_never_exceeded(self, lives: list[tuple[int, int, int]]) -> None:
        plan = self.LOADED.plan
        assert plan.hosts.aws is not None
        hosts, volumes = [], []
        for slot, (life, after, sent) in enumerate(lives):
            hosts.append(host(slot, 0, life + 60, type=plan.hosts.aws.types[0], sent_bytes=sent,
                              received_bytes=None))  # fmt: skip
            volumes.append(volume(0, life + 60 + after, id=f"vol-{slot}",
                                  gib=plan.hosts.aws.volume.gib))  # fmt: skip
        seen = observed(
            tuple(hosts), tuple(volumes), deadline_utc=at(28_800), traffic_cap_bytes=250 * 10**9
        )
        bound = worst_case(plan, PRICES, "stack")
        stored = [x for x in bound.lines if x.what.startswith(("S3", "readback"))]
        total = total_of([*cost_lines(seen, PRICES), *stored], plan.budget.allowance_usd)
        assert money.amount(total) <= money.amount(bound.total_usd)


class TestResources:
    def test_it_is_the_whole_record(self) -> None:
        found = resources(observed((host(0), host(1, end=None)), (volume(),)), final=True,
                          residue=("instance i-1 in us-east-1",))  # fmt: skip
        assert (found.attempts, found.studies) == (2, ("20261130-a", "20261130-b"))
        assert [each.seconds for each in found.hosts] == [3600.0, None]
        assert found.state == "stack still present"
        assert found.total_bound_usd == total_of(found.lines, "10")
        assert "not an invoice" in found.note

    def test_final_only_when_nothing_is_left(self) -> None:
        assert resources(observed((host(),)), final=True).state == "final"
