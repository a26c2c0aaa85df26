"""Invariant 1: nothing is launched unless the worst case fits the ceiling."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.admission import Bound, Earlier, admit, worst_case
from harness.errors import Refused
from harness.money import amount, hours, multiply, text, total
from harness.plan import Plan
from harness.prices import PriceFile, load_prices

PLANS = Path(__file__).parents[3] / "plans"
PRICES = load_prices("us-east-1")
BATCHED = json.loads((PLANS / "batched-learning" / "plan.json").read_text())


def plan(changes: dict[str, object] | None = None, base: Any = BATCHED) -> Plan:
    """The batched plan with values set at JSON pointers."""
    value = json.loads(json.dumps(base))
    for pointer, new in (changes or {}).items():
        *path, last = pointer.strip("/").split("/")
        here = value
        for step in path:
            here = here[int(step)] if isinstance(here, list) else here[step]
        here[int(last) if isinstance(here, list) else last] = new
    return Plan.model_validate_json(json.dumps(value), strict=True)


def bound(changes: dict[str, object] | None = None, earlier: tuple[Earlier, ...] = ()) -> Bound:
    return worst_case(plan(changes), PRICES, "stack", earlier)


def usd(changes: dict[str, object] | None = None, earlier: tuple[Earlier, ...] = ()) -> Decimal:
    return amount(bound(changes, earlier).total_usd)


def line(found: Bound, start: str) -> Decimal:
    (one,) = (each for each in found.lines if each.what.startswith(start))
    return amount(one.bound_usd)


class TestLines:
    def test_the_total_is_the_lines_and_the_allowance(self) -> None:
        found = bound()
        assert found.total_usd == total([*(x.bound_usd for x in found.lines), "10"])

    def test_every_line_is_quantity_times_price_with_sku_and_date(self) -> None:
        for each in bound().lines:
            product = multiply(Decimal(each.quantity), amount(each.unit_price_usd))
            assert text(product) == each.bound_usd
            assert each.sku and each.price_date == "2026-11"

    def test_hosts_are_priced_until_the_deadline_and_the_minute_its_schedule_may_take(self) -> None:
        assert line(bound(), "2 host(s) of g6e.2xlarge") == multiply(
            2 * hours(28860), amount("2.24208")
        )

    def test_the_dearest_allowed_type_is_priced(self) -> None:
        found = bound({"/hosts/aws/types": ["g6e.2xlarge", "g6e.16xlarge", "g6e.4xlarge"]})
        assert line(found, "2 host(s) of g6e.16xlarge") > line(bound(), "2 host(s)")

    def test_traffic_is_priced_on_both_sides(self) -> None:
        found = bound()
        assert line(found, "hosts' traffic cap, sent") == amount("5")
        assert line(found, "hosts' traffic cap, received") == amount("5")

    def test_volumes_pay_for_what_is_over_the_free_performance(self) -> None:
        more = bound({"/hosts/aws/volume/iops": 4000, "/hosts/aws/volume/throughput_mbps": 250})
        months = Fraction(28860 + 3600, 720 * 3600)
        for start, units, price in (("IOPS", 1000, "0.005"), ("throughput", 125, "0.04")):
            excess = Fraction(line(more, start)) - 2 * units * months * Fraction(price)
            assert 0 <= excess < Fraction(1, 10**12)
        assert not [each for each in bound().lines if each.what.startswith("IOPS")]

    def test_stored_bytes_are_seed_and_candidates_and_the_record(self) -> None:
        weights = 4 * 1_711_376_384
        stored = Decimal(3 * weights + 10**9).scaleb(-9)
        assert line(bound(), "S3 storage for 30 days") == stored * Decimal("0.023")
        assert line(bound(), "readback that leaves AWS") == stored * Decimal("0.09")

    def test_a_full_state_counts_moments_and_one_error_a_worker(self) -> None:
        weights = Decimal(4 * 1_711_376_384).scaleb(-9) * Decimal("0.09")
        for arm, factor in ((0, 5), (1, 4)):
            more = bound({f"/arms/{arm}/preserve": "full-state"})
            start = "readback that leaves AWS"
            assert line(more, start) - line(bound(), start) == (factor - 1) * weights

    def test_artifacts_that_stay_are_priced_for_30_days_and_said_to_go_on(self) -> None:
        found = bound({"/budget/retention_days": 0})
        assert line(found, "S3 storage for 30 days, and then it continues")
        assert any("goes on" in note for note in found.notes)

    def test_earlier_launches_are_lines(self) -> None:
        found = bound(earlier=(Earlier(fleet="f-1", bound_usd="3.25"),))
        assert line(found, "earlier launch f-1") == amount("3.25")


class TestFleetsThatAreNotBilled:
    @pytest.mark.parametrize("name", ["quickstart", "batched-learning"])
    def test_local_fleets_have_no_lines(self, name: str) -> None:
        local = plan(base=json.loads((PLANS / name / "plan.json").read_text()))
        found = admit(local, None, "local")
        assert (found.lines, found.total_usd) == ((), "0")

    def test_the_users_own_machines_pay_for_an_s3_store_only(self) -> None:
        found = worst_case(plan(), PRICES, "hosts-file")
        assert found.lines and not [each for each in found.lines if "host" in each.what]
        assert worst_case(plan({"/store": {"kind": "folder"}}), None, "hosts-file").lines == ()


class TestRefusals:
    def test_over_the_ceiling_names_both_figures_and_the_largest_line(self) -> None:
        found = bound({"/budget/ceiling_usd": "40"})
        with pytest.raises(Refused) as caught:
            admit(plan({"/budget/ceiling_usd": "40"}), PRICES, "stack")
        said = str(caught.value)
        assert f"worst case of {found.total_usd} USD" in said and "ceiling of 40 USD" in said
        assert "2 host(s) of g6e.2xlarge until the deadline" in said
        assert caught.value.exit_code == 3

    def test_exactly_at_the_ceiling_fits_and_a_hair_below_does_not(self) -> None:
        exact = bound().total_usd
        assert admit(plan({"/budget/ceiling_usd": exact}), PRICES, "stack").total_usd == exact
        below = text(amount(exact) - Decimal("1e-17"))
        with pytest.raises(Refused):
            admit(plan({"/budget/ceiling_usd": below}), PRICES, "stack")

    def test_launches_that_are_used_up(self) -> None:
        spent = tuple(Earlier(fleet=f"f-{i}", bound_usd="0") for i in range(4))
        assert admit(plan(), PRICES, "stack", spent[:3])
        with pytest.raises(Refused, match="4 of the 4 launches"):
            admit(plan(), PRICES, "stack", spent)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"/hosts/aws/types": ["g6e.2xlarge", "p6.48xlarge"]}, "'ec2/p6.48xlarge' is unknown"),
            ({"/hosts/aws/types": ["g5.2xlarge"]}, "not verified"),
            ({"/model/parameters": None}, "number of parameters is unknown"),
            ({"/hosts/aws/region": "eu-west-1"}, "not of 'eu-west-1'"),
            ({"/hosts/aws": None}, "declares no AWS hosts"),
            ({"/budget/deadline_s": 2**53 - 1}, "billion dollars"),
        ],
    )
    def test_what_is_unknown_is_refused(self, changes: dict[str, object], said: str) -> None:
        with pytest.raises(Refused, match=said):
            worst_case(plan(changes), PRICES, "stack")

    def test_no_prices_at_all(self) -> None:
        with pytest.raises(Refused, match="no prices"):
            worst_case(plan(), None, "stack")

    @pytest.mark.parametrize("gone", [p.name for p in PRICES.prices if p.name in {
        "ipv4", "gp3/storage", "gp3/iops", "gp3/throughput", "traffic/cross-zone",
        "traffic/internet", "s3/storage", "s3/put", "s3/get"}])  # fmt: skip
    def test_each_price_is_needed(self, gone: str) -> None:
        rest = tuple(price for price in PRICES.prices if price.name != gone)
        less = PriceFile(schema="harness/prices/1", region="us-east-1", checked="2026-11",
                         source="x", prices=rest)  # fmt: skip
        with pytest.raises(Refused, match=f"'{gone}' is unknown"):
            worst_case(plan(), less, "stack")


MONEY = st.decimals(min_value=0, max_value=1000, places=6).map(text)


class TestMoreNeverCostsLess:
    @given(st.lists(MONEY, max_size=5), MONEY)
    @settings(deadline=None, max_examples=40)
    def test_an_attempt(self, before: list[str], another: str) -> None:
        earlier = tuple(Earlier(fleet=f"f-{i}", bound_usd=each) for i, each in enumerate(before))
        more = (*earlier, Earlier(fleet="last", bound_usd=another))
        assert usd(earlier=more) == usd(earlier=earlier) + amount(another)

    @given(st.integers(1, 10**6), st.integers(1, 10**6))
    @settings(deadline=None, max_examples=40)
    def test_a_second_or_an_hour(self, deadline: int, more: int) -> None:
        key = "/budget/deadline_s"
        assert usd({key: deadline}) < usd({key: deadline + more})

    @given(st.integers(2, 15))
    @settings(deadline=None, max_examples=14)
    def test_a_host(self, count: int) -> None:
        assert usd({"/hosts/aws/count": count}) < usd({"/hosts/aws/count": count + 1})

    @given(st.integers(0, 10**14), st.integers(1, 10**9))
    @settings(deadline=None, max_examples=40)
    def test_a_byte_of_traffic(self, sent: int, more: int) -> None:
        key = "/budget/traffic_gb_per_host"
        less, greater = (float(Decimal(count).scaleb(-9)) for count in (sent, sent + more))
        assert usd({key: less}) < usd({key: greater})

    @given(st.integers(1, 10**11), st.integers(1, 10**9))
    @settings(deadline=None, max_examples=40)
    def test_a_stored_byte(self, parameters: int, more: int) -> None:
        key = "/model/parameters"
        assert usd({key: parameters}) < usd({key: parameters + more})

    @given(st.integers(1, 400), st.integers(1, 400))
    @settings(deadline=None, max_examples=20)
    def test_a_day_of_storage(self, days: int, more: int) -> None:
        key = "/budget/retention_days"
        assert usd({key: days}) < usd({key: days + more})

    @given(
        st.sampled_from(
            [
                ("/hosts/aws/volume/gib", 8, 2000),
                ("/hosts/aws/volume/iops", 3000, 16000),
                ("/hosts/aws/volume/throughput_mbps", 125, 1000),
                ("/budget/attempts", 1, 20),
            ]
        ),
        st.data(),
    )
    @settings(deadline=None, max_examples=40)
    def test_disk_or_launches(self, field: tuple[str, int, int], data: st.DataObject) -> None:
        key, low, high = field
        less = data.draw(st.integers(low, high - 1))
        more = data.draw(st.integers(less + 1, high))
        assert usd({key: less}) < usd({key: more})
